import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PackedPackage } from "../../scripts/release/npm-pack.ts";
import { packProgram } from "../../scripts/release/pack-program.ts";
import { findChromium } from "../support/launch-chromium.ts";
import { findRuntime, isSuitableRuntime } from "../../src/launch/runtime.mjs";
import { BrowserPage } from "../support/browser-page.ts";
import { ipcAddress } from "../support/ipc-address.ts";
import { need } from "../support/need.ts";
import { startStaticServer } from "../support/static-server.ts";
import { cleanEnv, type CliResult, runCli } from "../e2e/cli-process.ts";
import { SYSTEM_NODE, SYSTEM_NODE_VERSION, SYSTEM_PATH } from "../e2e/system-node.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Timeout of building, packing and installing, which takes 20 seconds with a warm npm cache. */
const INSTALL_DEADLINE_MS = 600_000;

const execute = promisify(execFile);

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

let folder: string;
let packed: PackedPackage;
/** Folder into which npm has installed the program. */
let program: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-package-"));
  const env = { ...cleanEnv(), PATH: SYSTEM_PATH };
  // On Windows npm is a shell script.
  const npm = async (args: string[], cwd: string) =>
    execute("npm", args, { cwd, env, shell: process.platform === "win32" });
  packed = await packProgram(folder, folder);
  const app = path.join(folder, "app");
  mkdirSync(app);
  writeFileSync(path.join(app, "package.json"), '{ "name": "app", "private": true }');
  const quick = ["--prefer-offline", "--no-audit", "--no-fund", "--omit=optional"];
  await npm(["install", ...quick, packed.tarball], app);
  const bin = JSON.parse(readFileSync(path.join(app, "node_modules/daybreak/package.json"), "utf8")).bin;
  program = path.join(app, "node_modules/daybreak", bin.daybreak);
}, INSTALL_DEADLINE_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the installed program with a separate cache folder and socket. */
function installed(args: string[], node: string): Promise<CliResult> {
  const env = {
    PATH: SYSTEM_PATH,
    SERVICE_CACHE_DIR: path.join(folder, "cache"),
    NODE_COMPILE_CACHE: "", // what Node compiles is kept where users have it
    SERVICE_SOCKET: ipcAddress(folder),
    SERVICE_HTTP_PORT: "0",
  };
  return runCli(args, { node, env, launcher: program });
}

/** Starts a daemon, requests an answer over HTTP and the page, and stops the daemon. */
async function converse(node: string) {
  const { code: run } = await installed(["run", "hi", "-n", "2"], node);
  const { stdout } = await installed(["status", "--json"], node);
  const { http_endpoint: url }: { http_endpoint: string } = JSON.parse(stdout);
  const response = await fetch(`${url}/api/generate`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "hi", max_tokens: 3 }),
  });
  const answer: unknown = await response.json();
  const pages = await Promise.all(
    ["/ui/", "/docs", "/docs/swagger-ui-bundle.js"].map(async (page) => (await fetch(url + page)).status),
  );
  const { code: stop } = await installed(["stop"], node);
  return { run, answer, pages, stop };
}

const conversation = {
  run: 0,
  answer: expect.objectContaining({ model: "daybreak-mini", done: true }),
  pages: [200, 200, 200],
  stop: 0,
};

const isSource = (file: string): boolean =>
  /(?<!\.d)\.tsx?$/.test(file) && !file.startsWith("docs/examples/");

describe("the package", () => {
  it("contains the built program, its configuration and its model, but no sources or tests", () => {
    const { files } = packed;
    expect(files).toEqual(
      expect.arrayContaining([
        "CHANGELOG.md",
        "LICENSE",
        "docs/install.md",
        "package.json",
        "dist/src/cli/main.js",
        "dist/src/engine/host/engine-main.js",
        "dist/src/ui/docs/LICENSE",
        "dist/src/ui/docs/console.js",
        "dist/wasm/kernels.o",
        "dist/configs/models.toml",
        "dist/models/daybreak-mini.gguf",
        "docs/daybreak.1",
      ]),
    );
    expect(files.filter((file) => isSource(file) || file.includes("test/"))).toEqual([]);
  });

  it("serves under the Node that runs these tests", async () => {
    expect(await converse(process.execPath)).toEqual(conversation);
  });
});

describe.skipIf(CHROMIUM.isMissing)(`the export for browsers${CHROMIUM.note}`, () => {
  const EXAMPLES = path.join(ROOT, "docs/examples");
  const MODEL = path.join(ROOT, "models/daybreak-mini.gguf");

  /** Uses the example: chooses a model, asks and reads the answer. */
  async function converseInPage(url: string): Promise<unknown> {
    await using page = await BrowserPage.open(chromium!, url);
    await page.until("document.querySelector('[type=text]') !== null && document.readyState === 'complete'");
    await page.chooseFile("[type=file]", MODEL);
    await page.until("!document.querySelector('[type=text]').disabled");
    await page.evaluate(`(() => {
      const question = document.querySelector("[type=text]");
      question.value = "What is Daybreak?";
      question.dispatchEvent(new Event("change"));
    })()`);
    await page.until("document.querySelector('pre').textContent.endsWith('(done)')");
    expect(page.problems.filter((problem) => !problem.includes("404"))).toEqual([]);
    return await page.evaluate("document.querySelector('pre').textContent");
  }

  it("runs in a page without a bundler", async () => {
    cpSync(path.join(EXAMPLES, "browser"), path.join(folder, "app"), { recursive: true });
    await using server = await startStaticServer(path.join(folder, "app"));
    expect(await converseInPage(`${server.url}/`)).toMatch(/^Daybreak .+\n\(done\)$/s);
  });

  it("has types and runs in a page built by Vite", async () => {
    const project = path.join(folder, "app/vite");
    cpSync(path.join(EXAMPLES, "vite"), project, { recursive: true });
    const compiler = path.join(ROOT, "node_modules/typescript/bin/tsc");
    const options = ["--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler"];
    const checked = [...options, "--target", "esnext", "--lib", "esnext,dom", "--types", "", "main.ts"];
    await execute(process.execPath, [compiler, ...checked], { cwd: project });
    await build({ root: project, configFile: path.join(project, "vite.config.js"), logLevel: "error" });
    await using server = await startStaticServer(path.join(project, "dist"));
    expect(await converseInPage(`${server.url}/`)).toMatch(/^Daybreak .+\n\(done\)$/s);
  });
});

describe("the installed program", () => {
  it("detects how it was installed", async () => {
    const { stdout } = await installed(["doctor", "--json"], process.execPath);
    const verdicts = {
      checks: expect.arrayContaining([expect.objectContaining({ name: "Runtime", verdict: "ok" })]),
    };
    expect(JSON.parse(stdout)).toMatchObject(verdicts);
    const update = await installed(["update", "--json"], process.execPath);
    expect(JSON.parse(update.stdout)).toMatchObject({
      installation: { kind: expect.stringMatching(/global|project/) },
    });
  });
});

const modules = (): string => path.join(folder, "app/node_modules");

/** Size of a folder in megabytes. */
function megabytes(within: string): number {
  const files = readdirSync(within, { recursive: true, withFileTypes: true });
  const sizes = files.map((each) =>
    each.isFile() ? statSync(path.join(each.parentPath, each.name)).size : 0,
  );
  return sizes.reduce((sum, size) => sum + size, 0) / 1e6;
}

describe("docs/install.md", () => {
  const page = readFileSync(path.join(ROOT, "docs/install.md"), "utf8");
  /** Megabytes in the documentation behind some words. */
  function said(words: string): number {
    const [, after] = page.split(words, 2);
    return Number(/\d+(?= MB)/.exec(after ?? "")?.[0]);
  }

  it.each([
    ["the program's package", "| `daybreak` |", () => megabytes(path.join(modules(), "daybreak"))],
    [
      "its dependencies",
      "| its dependencies |",
      () => megabytes(modules()) - megabytes(path.join(modules(), "daybreak")),
    ],
    ["OpenTelemetry", "OpenTelemetry (", () => megabytes(path.join(modules(), "@opentelemetry"))],
    ["all without Node and Dawn", "| Node and Dawn: ", () => megabytes(modules())],
  ])("states the size of %s within ten percent", (_, words, measure) => {
    const measured = measure();
    expect(said(words)).toBeGreaterThan(measured / 1.1);
    expect(said(words)).toBeLessThan(measured * 1.1);
  });

  it("states totals that equal the rounded sums of their parts", () => {
    const without = said("| `daybreak` |") + said("| its dependencies |");
    const withNode = without + said("/node-<platform>` |");
    const all = withNode + said("/dawn-<platform>` |");
    expect(Math.abs(said("| Node and Dawn: ") - without)).toBeLessThanOrEqual(1);
    expect(Math.abs(said("| GPU support: ") - withNode)).toBeLessThanOrEqual(1);
    expect(Math.abs(said("\nIn total ") - all)).toBeLessThanOrEqual(1);
  });
});

describe("the package under the system's Node", () => {
  const runtime = findRuntime();
  const packageName = "packageName" in runtime ? runtime.packageName : "";

  it.skipIf(isSuitableRuntime({ node: SYSTEM_NODE_VERSION }))(
    "says what to do when that is too old and the optional package is not there",
    async () => {
      const { code, stderr } = await installed(["--version"], SYSTEM_NODE);
      expect(code).toBe(1);
      expect(stderr).toContain(`needs Node 24.20 or later, and this is Node ${SYSTEM_NODE_VERSION}`);
      expect(stderr).toContain("npm install @daybreak-llm/node-");
    },
  );

  it.skipIf(packageName === "")("serves with the optional package", async () => {
    const beside = path.join(folder, "app/node_modules", packageName);
    symlinkSync(path.join(ROOT, "node_modules", packageName), beside, "junction");
    try {
      expect(await converse(SYSTEM_NODE)).toEqual(conversation);
    } finally {
      rmSync(beside);
    }
  });
});
