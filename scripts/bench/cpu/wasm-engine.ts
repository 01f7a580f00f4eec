import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { prepareEngine } from "../../../src/engine/engine-image.ts";
import type { Usage } from "../../../src/engine/protocol/generation.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import type { BenchEngine, BenchSettings, Workload } from "./bench-engine.ts";
import { benchPrompt } from "./bench-models.ts";
import { readClock } from "./processor-time.ts";
import { generated } from "../../../test/support/generated.ts";

const TIMEOUT_MS = 900_000;

/**
 * Starts the engine process that the daemon would start, with our kernels or with llama.cpp's as it was compiled.
 * @throws Error when our kernels cannot be used
 */
export async function startWasmEngine(
  kernels: "auto" | "stock",
  cacheDir: string,
  settings: BenchSettings,
): Promise<BenchEngine> {
  const { wasmPath, heapLimitBytes, problem } = await prepareEngine({ cacheDir, kernels });
  if (problem !== undefined) throw new Error(`our kernels cannot be used: ${problem}`);
  const start = createEngineStarter({
    loadTimeoutMs: TIMEOUT_MS,
    stallTimeoutMs: TIMEOUT_MS,
    wasmPath,
    heapLimitBytes,
  });
  const { file, flashAttention, cacheType, clock, ...sizes } = settings;
  const engine = await start({
    modelFiles: [file],
    adapters: [],
    purpose: "generate",
    sharedContext: true,
    gpuLayers: 0,
    ...sizes,
    flashAttention: flashAttention ? "true" : "false",
    cacheTypeK: cacheType,
    cacheTypeV: cacheType,
    contextShift: false,
  });
  const now = (): number => readClock(clock, engine.pid, settings.threads);
  const version =
    kernels === "stock" ? `llama.cpp ${engine.info.backendVersion}` : `image ${IMAGE_SHA256.slice(0, 12)}`;
  return {
    version,
    async measure(workload, salt) {
      const { depth = 0, promptTokens } = workload;
      if (depth > 0) await generate(engine, now, { promptTokens: depth, tokens: 1 }, 0, true);
      const startMs = now();
      const { usage, firstMs, endMs } = await generate(engine, now, workload, salt, depth > 0);
      const computed = usage.promptTokens - usage.cachedTokens;
      if (computed !== promptTokens) {
        throw new Error(`${computed} tokens of the prompt were computed, not ${promptTokens}`);
      }
      return {
        prefill: (computed / (firstMs - startMs)) * 1000,
        decode: ((usage.completionTokens - 1) / (endMs - firstMs)) * 1000,
      };
    },
    async measureStreams(streams, workload, salt) {
      const salts = Array.from({ length: streams }, (_, stream) => salt * streams + stream);
      const together = (tokens: number) =>
        Promise.all(salts.map((each) => generate(engine, now, { ...workload, tokens }, each, true)));
      await together(1);
      const runs = await together(workload.tokens);
      for (const { usage } of runs) {
        if (usage.cachedTokens < workload.promptTokens - 1) throw new Error("a prompt was not in the cache");
      }
      const startMs = Math.min(...runs.map(({ firstMs }) => firstMs));
      const endMs = Math.max(...runs.map(({ endMs: end }) => end));
      return ((streams * (workload.tokens - 1)) / (endMs - startMs)) * 1000;
    },
    close: () => engine.close(),
  };
}

async function generate(
  engine: Engine,
  now: () => number,
  { depth = 0, promptTokens, tokens }: Workload,
  salt: number,
  cachePrompt: boolean,
): Promise<{ readonly firstMs: number; readonly endMs: number; readonly usage: Usage }> {
  const events = generated(
    engine,
    {
      input: { kind: "prompt", prompt: benchPrompt(depth + promptTokens, salt, depth).text },
      maxTokens: tokens,
      stop: [],
      sampling: { temperature: 0, ignoreEos: true },
      format: { type: "text" },
      cachePrompt,
    },
    new AbortController().signal,
  );
  let firstMs: number | undefined;
  for await (const event of events) {
    if (event.type === "text-delta") firstMs ??= now();
    if (event.type === "done") {
      const endMs = now();
      return { firstMs: firstMs ?? endMs, endMs, usage: event.usage };
    }
  }
  throw new Error("the engine did not end its answer");
}
