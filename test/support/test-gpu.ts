import { chooseAdapter } from "../../src/engine/gpu/choose-adapter.ts";
import type { GpuAdapter } from "../../src/engine/gpu/gpu-report.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { spawnTestEngine } from "./program.ts";

const report = await probeGpu();
const software = report.adapters.find((each) => "software" in each && each.software);
const choice = chooseAdapter(report, {
  powerPreference: "high-performance",
  // Software is everywhere the same; a real GPU does where there is none.
  adapter: software?.name,
});

/** The adapter that tests run on; undefined: this machine has none. */
export const testGpu: GpuAdapter | undefined = "adapter" in choice ? choice.adapter : undefined;

/** For the name of a suite, so that its report says what it ran on, or that and why it did not run. */
export const onTestGpu = testGpu
  ? `on ${testGpu.name}`
  : `SKIPPED, there is no GPU adapter to test on: ${"problem" in choice ? choice.problem : ""}`;

/** What puts all layers of a model onto it; nothing where there is none. */
export const onGpu: Partial<EngineSpec> = {
  gpuLayers: -1,
  ...(testGpu && { gpu: { backend: testGpu.backend, name: testGpu.name, layers: 5, batchSize: 16 } }),
};

/** A software adapter compiles shaders for seconds, beside other tests on two cores. */
export const GPU_TEST_TIMEOUT_MS = 180_000;

export const startGpuEngine = createEngineStarter({
  loadTimeoutMs: GPU_TEST_TIMEOUT_MS,
  stallTimeoutMs: GPU_TEST_TIMEOUT_MS,
  spawn: spawnTestEngine,
});
