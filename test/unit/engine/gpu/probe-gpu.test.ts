import fs from "node:fs";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { probeGpu } from "../../../../src/engine/gpu/probe-gpu.ts";
import { spawnEngine } from "../../../../src/engine/launch.ts";
import { temporaryFolder } from "../../../support/engine-fixture.ts";

const folder = temporaryFolder();

/** A fake Dawn whose adapters behave as their names say. */
const FAKE = `
import fs from "node:fs";
const names = NAMES;
const open = (name) => {
  if (name === "crashes") process.abort();
  if (name === "hangs") {
    fs.writeSync(2, "hangs");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
  if (name === "throws") throw new Error("it is broken\\nfor good");
  const features = new Set(name === "has no f16" ? [] : ["shader-f16", "subgroups"]);
  return {
    features,
    limits: { maxBufferSize: 7, maxComputeWorkgroupStorageSize: name === "is small" ? 8192 : 32768 },
    info: { vendor: "v", architecture: name === "is software" ? "software" : "a", device: "d", description: name },
    requestDevice: async () => {
      if (name === "has no device") throw new Error("no memory");
      return { destroy() {} };
    },
  };
};
export const create = (flags) => ({
  requestAdapter: async () => {
    const wanted = flags.find((flag) => flag.startsWith("adapter="))?.slice(8);
    if (wanted === undefined) return open(names.at(-1));
    if (names.includes(wanted)) return open(wanted);
    if (names.includes("crashes at once")) process.kill(process.pid, "SIGSEGV");
    throw new Error(["no suitable backends found", "Available adapters:", ...names.map((name) => \` * backend: 'vulkan', name: '\${name}'\`), " * backend: 'null', name: 'nothing'"].join("\\n"));
  },
});
`;

function fakeDawn(...names: string[]): string {
  const file = `${fs.mkdtempSync(`${folder}/`)}/index.mjs`;
  fs.writeFileSync(file, FAKE.replace("NAMES", JSON.stringify(names)));
  return file;
}

describe("probe gpu", () => {
  afterAll(() => fs.rmSync(folder, { recursive: true, maxRetries: 10 }));

  describe("the probe", () => {
    test("opens every adapter and reports the system's preferences", async () => {
      const report = await probeGpu({ dawnPath: fakeDawn("works", "is software") });
      expect(report).toEqual({
        adapters: [
          expect.objectContaining({ name: "works", backend: "vulkan", vendor: "v", software: false }),
          expect.objectContaining({ name: "is software", software: true }),
        ],
        fastest: { backend: "vulkan", name: "is software" },
      });
      expect(report.adapters[0]).not.toHaveProperty("problem");
    });

    test.each([
      ["has no f16", /shader-f16/],
      ["is small", /8192 bytes/],
      ["has no device", /cannot be opened \(no memory\)\. .*update the driver/],
      ["throws", /^it is broken$/],
      ["crashes", /(?:was killed by SIG|exited with code 134).*Update the driver/],
    ])("an adapter that %s is reported with the reason, beside the others", async (name, reason) => {
      const { adapters } = await probeGpu({ dawnPath: fakeDawn("works", name) });
      expect(adapters.map((each) => [each.name, each.problem])).toEqual([
        ["works", undefined],
        [name, expect.stringMatching(reason)],
      ]);
    });

    test("an adapter that hangs is skipped at the deadline", async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      onTestFinished(() => void vi.useRealTimers());
      const { adapters } = await probeGpu({
        dawnPath: fakeDawn("hangs", "works"),
        deadlineMs: 4000,
        spawn: (command, args, options) => {
          const child = spawnEngine(command, args, options);
          child.stderr?.on(
            "data",
            (data) => String(data).includes("hangs") && setImmediate(() => vi.advanceTimersByTime(5000)),
          );
          return child;
        },
      });
      expect(adapters.map((each) => [each.name, each.problem])).toEqual([
        ["works", undefined],
        ["hangs", expect.stringMatching(/^The process that opened the driver did not answer for 4 s\. ./)],
      ]);
    });

    test.skipIf(process.platform === "win32")(
      "a driver that crashes when drivers are listed is reported, and how to leave it out",
      async () => {
        expect(await probeGpu({ dawnPath: fakeDawn("works", "crashes at once") })).toEqual({
          adapters: [],
          problem: expect.stringMatching(/was killed by SIGSEGV\. .*VK_DRIVER_FILES/),
        });
      },
    );

    test("reports that there is no adapter, no Dawn, or one that cannot be loaded", async () => {
      expect(await probeGpu({ dawnPath: fakeDawn() })).toEqual({
        adapters: [],
        problem: expect.stringMatching(/Vulkan loader|No driver offers/),
      });
      expect(await probeGpu({ dawnPath: undefined })).toEqual({
        adapters: [],
        problem: expect.stringContaining(
          `npm install @daybreak-llm/dawn-${process.platform}-${process.arch}`,
        ),
      });
      const file = `${folder}/broken.mjs`;
      fs.writeFileSync(file, 'throw new Error("ld-linux is not there");');
      expect(await probeGpu({ dawnPath: file })).toEqual({
        adapters: [],
        problem: "Dawn cannot be loaded here: ld-linux is not there",
      });
    });

    test("may only read Dawn and its own code, and gets no secret environment variables", async () => {
      let seen: { args: readonly string[]; env: Readonly<Record<string, string>> } | undefined;
      vi.stubEnv("HUB_TOKEN", "secret");
      await probeGpu({
        dawnPath: fakeDawn("works"),
        spawn: (command, args, options) => {
          seen = { args, env: options.env };
          return spawnEngine(command, args, options);
        },
      });
      const rights = seen?.args.filter((arg) => arg.startsWith("--allow-") || arg === "--permission");
      expect(new Set(rights?.map((right) => right.split("=", 1)[0]))).toEqual(
        new Set(["--permission", "--allow-worker", "--allow-fs-read", "--allow-addons"]),
      );
      expect(JSON.stringify(seen?.env)).not.toContain("secret");
    });
  });
});

test("reports a platform for which Dawn is not built", async () => {
  const { arch } = process;
  onTestFinished(() => void Object.defineProperty(process, "arch", { value: arch }));
  Object.defineProperty(process, "arch", { value: "riscv64" });
  expect((await probeGpu({ dawnPath: undefined })).problem).toBe(
    `Dawn, through which Daybreak uses GPUs, is not available for ${process.platform} on riscv64.`,
  );
});
