import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";
import { type DawnDouble, writeDawnDouble } from "../support/dawn-double.ts";
import { temporaryFolder } from "../support/engine-fixture.ts";
import { linkedInstallation } from "../support/linked-installation.ts";
import { both, need, unless } from "../support/need.ts";
import { GPU_TEST_TIMEOUT_MS, onTestGpu, testGpu } from "../support/test-gpu.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/** Dawn uses Vulkan on Linux only. */
const VULKAN = both(
  unless(process.platform === "linux", "Linux alone has Vulkan as the only way to a GPU"),
  need("Dawn, the optional package webgpu", findDawn() !== undefined),
);

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

interface Situation {
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Folder of the program; default: the repository. */
  readonly home?: string;
}

/** First line of `daybreak gpu` in a separate process. */
async function verdict({ flags = [], env = {}, home = REPOSITORY }: Situation): Promise<string> {
  const args = [path.join(home, "src/launch/daybreak.mjs"), "gpu", ...flags];
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SERVICE|HUB)_/.test(name));
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...Object.fromEntries(inherited), HOME: folder, XDG_CONFIG_HOME: folder, ...env },
  });
  return stdout.split("\n", 1)[0] ?? "";
}

/** Copy of the program with another Dawn. */
function installationWith(double: DawnDouble): string {
  const home = linkedInstallation(folder, ["webgpu"]);
  const webgpu = path.join(home, "node_modules", "webgpu");
  fs.mkdirSync(webgpu);
  fs.writeFileSync(path.join(webgpu, "package.json"), '{"name": "webgpu", "exports": "./index.mjs"}');
  writeDawnDouble(webgpu, double);
  return home;
}

describe("daybreak gpu explains a missing GPU", { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("without the package webgpu", async () => {
    expect(await verdict({ home: linkedInstallation(folder, ["webgpu"]) })).toMatch(
      /^Models run on the CPU\. The optional package @daybreak-llm\/dawn-.* is not installed.* npm install @daybreak-llm/,
    );
  });

  test("with a required sandbox", async () => {
    expect(await verdict({ flags: ["--sandbox", "require"] })).toMatch(
      /^Models run on the CPU\. A required sandbox .*--sandbox auto/,
    );
  });

  test.skipIf(VULKAN.isMissing)(`without a Vulkan loader${VULKAN.note}`, async () => {
    const libraries = fs.mkdtempSync(`${folder}/`);
    fs.writeFileSync(path.join(libraries, "libvulkan.so.1"), "no library");
    expect(await verdict({ env: { LD_LIBRARY_PATH: libraries } })).toMatch(
      /^Models run on the CPU\. There is no Vulkan loader .*; install it and the GPU's Vulkan driver/,
    );
  });

  test.skipIf(VULKAN.isMissing)(`without a driver${VULKAN.note}`, async () => {
    const none = path.join(folder, "none.json");
    expect(await verdict({ env: { VK_DRIVER_FILES: none, VK_ICD_FILENAMES: none } })).toMatch(
      /^Models run on the CPU\. (There is no Vulkan loader|No driver offers an adapter .*Install or update the driver)/,
    );
  });
});

describe.skipIf(!testGpu)(`daybreak gpu ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test.runIf(testGpu?.software)("reports that a software adapter is not used by default", async () => {
    expect(await verdict({})).toMatch(/computes on the CPU.* install its driver.* gpu\.adapter/);
  });

  test("uses the named adapter", async () => {
    const { name = "" } = testGpu ?? {};
    expect(await verdict({ flags: ["--gpu-adapter", name] })).toBe(`Models use ${name}.`);
  });

  test.each([
    ["has no 16-bit floats", { without: ["shader-f16"] }, /shader-f16.*newer driver/],
    [
      "has no memory left",
      { refusal: "out of memory" },
      /cannot be opened \(out of memory\)\. Close programs/,
    ],
  ])("explains an adapter that %s", async (_what, double, words) => {
    const home = installationWith(double);
    expect(await verdict({ home, flags: ["--gpu-adapter", testGpu?.name ?? ""] })).toMatch(words);
  });
});
