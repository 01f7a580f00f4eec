import path from "node:path";
import { describe, expect, it } from "vitest";
import type { Check, Finding } from "../../../../src/cli/doctor/run-checks.ts";
import {
  gpuCheck,
  memoryCheck,
  runtimeCheck,
  type RuntimeProperties,
  sandboxCheck,
} from "../../../../src/cli/doctor/machine-checks.ts";
import { platformPackages } from "../../../../src/launch/platform-packages.mjs";
import type { GpuState } from "../../../../src/engine/gpu/gpu-finder.ts";
import type { SandboxState } from "../../../../src/engine/sandbox/sandbox-finder.ts";
import type { MemoryLimit } from "../../../../src/machine/memory.ts";

const GB = 1e9;

async function look(check: Check): Promise<readonly Finding[]> {
  return await check.run(new AbortController().signal);
}

function limit(name: string, bytes: number, usedBytes: number): MemoryLimit {
  return { name, bytes, usedBytes };
}

async function memory(...limits: MemoryLimit[]): Promise<Finding | undefined> {
  return (await look(memoryCheck(() => limits, "linux")))[0];
}

describe("runtimeCheck", () => {
  const packages = platformPackages(process.platform, process.arch);
  const good: RuntimeProperties = {
    version: "26.1.0",
    binary: "/usr/bin/node",
    jspi: true,
    memory64: true,
    simd: true,
    processors: { usable: 8, cores: 4 },
    instructions: ["sse4_1", "avx2", "fma"],
  };
  const found = (changes: Partial<RuntimeProperties>) => look(runtimeCheck(() => ({ ...good, ...changes })));

  it("accepts the Node of the tests", async () => {
    const [runtime, processors] = await look(runtimeCheck());
    expect(runtime).toMatchObject({ name: "Runtime", verdict: "ok" });
    expect(processors?.verdict).not.toBe("problem");
  });

  // A clone uses the first package, archives and installed packages the second.
  it.each(packages ? [packages.nodeSource, packages.node] : [])("recognizes Node from %s", async (name) => {
    const binary = path.join("/app/node_modules", name, packages?.nodeBinary ?? "");
    expect((await found({ binary }))[0]?.message).toContain("Node 26.1.0, which came with Daybreak");
  });

  it("prints the path of another Node", async () => {
    expect((await found({}))[0]?.message).toContain("Node 26.1.0, /usr/bin/node");
  });

  it("reports missing WebAssembly features", async () => {
    const [runtime] = await found({ jspi: false, memory64: false });
    expect(runtime).toMatchObject({ verdict: "problem", cure: expect.stringContaining("Install Node 24") });
    expect(runtime?.message).toContain("lacks JSPI and memory64");
    expect((await found({ simd: false }))[1]?.verdict).toBe("problem");
  });

  it("notes processors without AVX2", async () => {
    expect((await found({}))[1]).toEqual({
      name: "Processors",
      verdict: "ok",
      message: "8 usable, 4 cores; SIMD is available",
    });
    expect((await found({ instructions: ["sse4_1"] }))[1]?.verdict).toBe("note");
    expect((await found({ instructions: undefined }))[1]?.verdict).toBe("ok");
  });
});

describe("memoryCheck", () => {
  it("reports the free memory of the narrowest limit", async () => {
    expect(
      await memory(limit("this machine", 64 * GB, 4 * GB), limit("this container", 8 * GB, 6 * GB)),
    ).toEqual({
      name: "Memory",
      verdict: "ok",
      message: "2.0 GB free of 8.0 GB (this container)",
    });
  });

  it.each([
    [1 * GB, "note"],
    [0.1 * GB, "problem"],
  ])("warns with %d free bytes: %s", async (free, verdict) => {
    expect(await memory(limit("this machine", 8 * GB, 8 * GB - free))).toMatchObject({
      verdict,
      cure: expect.any(String),
    });
  });

  it("accepts any memory on systems that do not report free memory", async () => {
    const [finding] = await look(memoryCheck(() => [limit("this machine", 8 * GB, 8 * GB)], "darwin"));
    expect(finding).toEqual({ name: "Memory", verdict: "ok", message: "8.0 GB in total" });
  });
});

describe("sandboxCheck", () => {
  const bubblewrap: SandboxState = {
    mode: "auto",
    wall: "bubblewrap",
    parts: ["no network"],
    problem: undefined,
  };
  const none: SandboxState = { mode: "auto", wall: "none", parts: [], problem: "Install bubblewrap." };
  it.each<[string, SandboxState, Finding["verdict"], string | undefined]>([
    ["the best sandbox", bubblewrap, "ok", undefined],
    ["a weaker sandbox", { ...bubblewrap, problem: "Install bubblewrap." }, "note", "Install bubblewrap."],
    ["no sandbox", none, "note", "Install bubblewrap."],
    ["no sandbox although one is required", { ...none, mode: "require" }, "problem", "Install bubblewrap."],
    [
      "a disabled sandbox",
      { ...none, mode: "off" },
      "note",
      "Set sandbox to auto to use the system's sandbox too.",
    ],
  ])("reports %s", async (_what, state, verdict, cure) => {
    const [finding] = await look(sandboxCheck(async () => state));
    expect({ verdict: finding?.verdict, cure: finding?.cure }).toEqual({ verdict, cure });
  });
});

describe("gpuCheck", () => {
  const none: GpuState = { available: false, adapter: undefined, adapters: [], problem: "Install a driver." };

  it("notes a missing GPU, and reports a problem if one is required", async () => {
    expect((await look(gpuCheck("auto", async () => none)))[0]).toEqual({
      name: "GPU",
      verdict: "note",
      message: "models run on the CPU",
      cure: "Install a driver.",
    });
    expect((await look(gpuCheck("require", async () => none)))[0]?.verdict).toBe("problem");
  });

  it("names unusable GPUs", async () => {
    const adapters = [{ backend: "vulkan", name: "Old Card", problem: "too old" }] as const;
    const [gpu] = await look(gpuCheck("auto", async () => ({ ...none, adapters })));
    expect(gpu?.message).toBe("models run on the CPU (Old Card: daybreak gpu shows more)");
  });
});
