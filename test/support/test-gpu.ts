import { chooseAdapter } from "../../src/engine/gpu/offload-to-gpu.ts";
import type { GpuAdapter } from "../../src/engine/gpu/gpu-report.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { createEngineStarter, type EngineStarterOptions } from "../../src/engine/start-engine.ts";
import type { StartEngine } from "../../src/engine/engine.ts";
import { preparedEngine } from "./engine-fixture.ts";
import { spawnTestEngine } from "./program.ts";
import { requireOnCi } from "./require-on-ci.ts";

const report = await probeGpu();
const software = report.adapters.find((each) => "software" in each && each.software);
// Software is everywhere the same; a real GPU does where there is none.
const choice = chooseAdapter(report, software?.name);

/** The adapter that tests run on; undefined: this machine has none. */
export const testGpu: GpuAdapter | undefined = "adapter" in choice ? choice.adapter : undefined;

/** For the name of a suite, so that its report says what it ran on, or that and why it did not run. */
export const onTestGpu = testGpu
  ? `on ${testGpu.name}`
  : `[skipped: no GPU adapter to test on: ${"problem" in choice ? choice.problem : ""}]`;

requireOnCi("software GPU to test on", testGpu?.software === true);

/** Settings that offload all layers of a model; empty where there is no GPU. */
export const onGpu: Partial<EngineSpec> = {
  gpuLayers: -1,
  ...(testGpu && { gpu: { backend: testGpu.backend, name: testGpu.name, layers: 5, batchSize: 16 } }),
};

/** A software adapter compiles shaders for seconds, beside other tests on two cores. */
export const GPU_TEST_TIMEOUT_MS = 600_000;

/** How engines on a GPU behave otherwise than those of a test. */
type GpuEngineOptions = Partial<
  Pick<
    EngineStarterOptions,
    "dawnPath" | "stallTimeoutMs" | "spawn" | "programCache" | "wasmPath" | "heapLimitBytes"
  >
>;

/** Makes the function that starts the engine that users run, on the GPU where a specification says so. */
export function gpuEngineStarter(options: GpuEngineOptions = {}): StartEngine {
  return async (...args) => {
    const { wasmPath, heapLimitBytes } = await preparedEngine();
    const start = createEngineStarter({
      loadTimeoutMs: GPU_TEST_TIMEOUT_MS,
      stallTimeoutMs: GPU_TEST_TIMEOUT_MS,
      spawn: spawnTestEngine,
      wasmPath,
      heapLimitBytes,
      ...options,
    });
    return await start(...args);
  };
}

export const startGpuEngine = gpuEngineStarter();
