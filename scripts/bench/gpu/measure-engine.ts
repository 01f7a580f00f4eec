import type { Engine } from "../../../src/engine/engine.ts";
import type { GpuAdapter } from "../../../src/engine/gpu/gpu-report.ts";
import { prepareEngine } from "../../../src/engine/prepare-engine.ts";
import type { EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import { describeCosts, profileEngine } from "./profile-engine.ts";
import { fastest, type Speed, type Workload } from "./rates.ts";

/** A step on the CPU; larger ones gain nothing. */
const CPU_BATCH_SIZE = 128;
/** What the daemon takes on a GPU. */
const GPU_BATCH_SIZE = 512;
/** The same on a software adapter. */
const SOFTWARE_BATCH_SIZE = 16;

const TIMEOUT_MS = 600_000;

interface EngineBench {
  /** The speed of a model in our engine, on the CPU or on an adapter. */
  readonly measure: (file: string, workload: Workload, adapter?: GpuAdapter) => Promise<Speed>;
  /** Where the time of a token goes on an adapter, in words. */
  readonly profile: (file: string, workload: Workload, adapter: GpuAdapter) => Promise<string>;
}

export async function createEngineBench(cacheDir: string): Promise<EngineBench> {
  const prepared = await prepareEngine({ cacheDir, kernels: "auto" });
  const start = createEngineStarter({
    loadTimeoutMs: TIMEOUT_MS,
    stallTimeoutMs: TIMEOUT_MS,
    wasmPath: prepared.wasmPath,
    heapLimitBytes: prepared.heapLimitBytes,
  });
  const measure: EngineBench["measure"] = async (file, workload, adapter) => {
    try {
      const engine = await start(specOf(file, workload, adapter));
      try {
        if (adapter && engine.info.gpuLayers === 0) return { problem: "no layer was offloaded" };
        const measured = [];
        // The first run is for compilers, and does not count.
        await measureOnce(engine, workload);
        for (let run = 0; run < workload.runs; run++) measured.push(await measureOnce(engine, workload));
        return fastest(measured);
      } finally {
        await engine.close();
      }
    } catch (error) {
      return { problem: String(error) };
    }
  };
  const profile: EngineBench["profile"] = async (file, workload, adapter) => {
    try {
      const costs = await profileEngine(prepared, adapter, specOf(file, workload, adapter), workload.tokens);
      return describeCosts(costs);
    } catch (error) {
      return `no profile: ${String(error)}`;
    }
  };
  return { measure, profile };
}

function specOf(file: string, { promptTokens, tokens, threads }: Workload, adapter?: GpuAdapter): EngineSpec {
  const contextSize = promptTokens + tokens + 16;
  const gpuBatchSize = adapter?.software ? SOFTWARE_BATCH_SIZE : GPU_BATCH_SIZE;
  const batchSize = Math.min(contextSize, adapter ? gpuBatchSize : CPU_BATCH_SIZE);
  return {
    modelFiles: [file],
    adapters: [],
    purpose: "generate",
    contextSize,
    sharedContext: true,
    gpuLayers: adapter ? -1 : 0,
    ...(adapter && { gpu: { backend: adapter.backend, name: adapter.name, layers: 1, batchSize } }),
    slots: 1,
    threads: adapter ? 1 : threads,
    batchSize,
    flashAttention: "auto",
    contextShift: false,
  };
}

async function measureOnce(
  engine: Engine,
  { promptTokens, tokens }: Workload,
): Promise<{ prefill: number; decode: number }> {
  const events = engine.generate(
    {
      input: { kind: "prompt", prompt: " a".repeat(promptTokens - 1) },
      maxTokens: tokens,
      stop: [],
      sampling: { temperature: 0, ignoreEos: true },
      format: { type: "text" },
      cachePrompt: false,
    },
    new AbortController().signal,
  );
  for await (const event of events) {
    if (event.type !== "done") continue;
    const { usage, timings } = event;
    return {
      prefill: (usage.promptTokens / timings.promptMs) * 1000,
      // The first token comes with the prompt.
      decode: ((usage.completionTokens - 1) / timings.completionMs) * 1000,
    };
  }
  throw new Error("the engine did not end its answer");
}
