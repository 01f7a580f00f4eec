import type { Engine } from "../../../src/engine/engine.ts";
import type { GpuAdapter } from "../../../src/engine/gpu/gpu-report.ts";
import { prepareEngine } from "../../../src/engine/engine-image.ts";
import type { EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import { compareStarts, compareWarmUp } from "./first-requests.ts";
import { describeCosts, profileEngine } from "./profile-engine.ts";
import { fastest, type Speed, type Workload } from "./rates.ts";
import { greedyRequest } from "./greedy-request.ts";
import { generated } from "../../../test/support/generated.ts";

/** A step on the CPU; larger ones gain nothing. */
const CPU_BATCH_SIZE = 128;
/** Batch size of the daemon on a GPU. */
const GPU_BATCH_SIZE = 512;
/** The same on a software adapter. */
const SOFTWARE_BATCH_SIZE = 16;

const WORD = " a";

const TIMEOUT_MS = 600_000;

interface EngineBench {
  /** The speed of a model in our engine, on the CPU or on an adapter. */
  readonly measure: (file: string, workload: Workload, adapter?: GpuAdapter) => Promise<Speed>;
  /** Where the time of a token goes on an adapter, in words. */
  readonly profile: (file: string, workload: Workload, adapter: GpuAdapter) => Promise<string>;
  /** How long the first requests take with the warm-up and without, in words. */
  readonly warmUp: (file: string, workload: Workload, adapter: GpuAdapter) => Promise<string>;
  /** How long starts take whose driver keeps programs and finds them, in words. */
  readonly starts: (file: string, workload: Workload, adapter: GpuAdapter) => Promise<string>;
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
        const prompt = await promptOf(engine, workload.promptTokens);
        const measured = [];
        // The first run is for compilers, and does not count.
        await measureOnce(engine, prompt, workload.tokens);
        for (let run = 0; run < workload.runs; run++) {
          measured.push(await measureOnce(engine, prompt, workload.tokens));
        }
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
  const warmUp: EngineBench["warmUp"] = async (file, workload, adapter) => {
    try {
      return await compareWarmUp({ engine: prepared, adapter, spec: specOf(file, workload, adapter) });
    } catch (error) {
      return `no times of the first requests: ${String(error)}`;
    }
  };
  const starts: EngineBench["starts"] = async (file, workload, adapter) => {
    try {
      return await compareStarts({ engine: prepared, adapter, spec: specOf(file, workload, adapter) });
    } catch (error) {
      return `no times of starts: ${String(error)}`;
    }
  };
  return { measure, profile, warmUp, starts };
}

function specOf(
  file: string,
  { promptTokens, tokens, threads, layers }: Workload,
  adapter?: GpuAdapter,
): EngineSpec {
  const contextSize = promptTokens + tokens + 16;
  const gpuBatchSize = adapter?.software ? SOFTWARE_BATCH_SIZE : GPU_BATCH_SIZE;
  const batchSize = Math.min(contextSize, adapter ? gpuBatchSize : CPU_BATCH_SIZE);
  return {
    modelFiles: [file],
    adapters: [],
    purpose: "generate",
    contextSize,
    sharedContext: true,
    gpuLayers: adapter ? layers : 0,
    ...(adapter && { gpu: { backend: adapter.backend, name: adapter.name, layers: 1, batchSize } }),
    slots: 1,
    // What is not on the GPU is computed on the CPU.
    threads: adapter && layers < 0 ? 1 : threads,
    batchSize,
    flashAttention: "auto",
    contextShift: false,
  };
}

/** A text of about so many tokens, and not more: a word is one token in some vocabularies, two in others. */
async function promptOf(engine: Engine, tokens: number): Promise<string> {
  const signal = new AbortController().signal;
  const count = async (words: number): Promise<number> =>
    (await engine.tokenize(WORD.repeat(words), { addSpecial: true, parseSpecial: false }, signal)).length;
  const one = await count(1);
  const perWord = Math.max(1, (await count(2)) - one);
  return WORD.repeat(1 + Math.max(0, Math.floor((tokens - one) / perWord)));
}

async function measureOnce(
  engine: Engine,
  prompt: string,
  tokens: number,
): Promise<{ prefill: number; decode: number }> {
  const events = generated(engine, greedyRequest(prompt, tokens), new AbortController().signal);
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
