import { ensureBenchModel, benchPrompt } from "./bench/cpu/bench-models.ts";
import { prepareEngine } from "../src/engine/prepare-engine.ts";
import { createEngineStarter } from "../src/engine/start-engine.ts";
const file = ensureBenchModel("/tmp/benchcache", "0.5B", "Q4_0");
const { wasmPath, heapLimitBytes } = await prepareEngine({ cacheDir: "/tmp/benchcache", kernels: "auto" });
const start = createEngineStarter({ loadTimeoutMs: 100000, stallTimeoutMs: 100000, wasmPath, heapLimitBytes });
for (let run = 0; run < 3; run++) for (const [ctx, batch] of [[4096, 220], [32768, 40], [32768, 116]] as const) {
  const e = await start({ modelFiles: [file], adapters: [], purpose: "generate", contextSize: ctx, sharedContext: true, gpuLayers: 0, slots: 4, threads: 1, batchSize: batch, flashAttention: "auto", contextShift: false } as any);
  let done: any;
  await e.generate({ input: { kind: "prompt", prompt: benchPrompt(512, run).text }, maxTokens: 16, stop: [], sampling: { ignoreEos: true, temperature: 0 }, format: { type: "text" }, cachePrompt: false } as any, (ev: any) => { if (ev.type === "done") done = ev; }, new AbortController().signal);
  console.log(ctx, batch, done.usage.promptTokens, (done.usage.promptTokens / done.timings.promptMs * 1000).toFixed(0) + " prefill/s", ((done.usage.completionTokens - 1) / done.timings.completionMs * 1000).toFixed(1) + " decode/s");
  await e.close();
}
