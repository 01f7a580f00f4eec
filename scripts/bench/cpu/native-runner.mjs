// Runs beside an installed node-llama-cpp: loads one model on the CPU and measures what it is asked for.
// Argument: the settings as JSON. Messages: { id, kind: "measure" | "streams", prompts, tokens, depth } → { id, … }.
import { getLlama } from "node-llama-cpp";

const { file, threads, slots, batchSize, contextSize, flashAttention, cacheType, clock } = JSON.parse(
  process.argv[2],
);

const GREEDY = { temperature: 0, yieldEogToken: true };

// maxThreads 0: else the number of threads is only a hint.
const llama = await getLlama({ gpu: false, build: "never", progressLogs: false, maxThreads: 0 });
const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
const context = await model.createContext({
  sequences: slots,
  contextSize,
  batchSize,
  threads,
  flashAttention,
  experimentalKvCacheKeyType: cacheType.toUpperCase(),
  experimentalKvCacheValueType: cacheType.toUpperCase(),
});

/** Milliseconds, as processor-time.ts counts them. */
function now() {
  if (clock === "wall") return performance.now();
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 / threads;
}

function seconds(from, to) {
  return (to - from) / 1000;
}

/** Kept between measurements, so that what comes before the prompt is computed once. */
let kept;

async function measure([whole], tokens, depth) {
  kept ??= context.getSequence();
  await kept.adaptStateToTokens(whole.slice(0, depth), false);
  const missing = whole.slice(kept.nextTokenIndex, depth);
  if (missing.length > 0) await kept.evaluateWithoutGeneratingNewTokens(missing);
  const prompt = whole.slice(depth);
  const times = [now()];
  const generated = kept.evaluate(prompt, GREEDY);
  while (times.length <= tokens) {
    if ((await generated.next()).done) break;
    times.push(now());
  }
  await generated.return();
  return {
    prefill: prompt.length / seconds(times[0], times[1]),
    decode: (times.length - 2) / seconds(times[1], times.at(-1)),
  };
}

async function measureStreams(prompts, tokens) {
  kept?.dispose();
  kept = undefined;
  const sequences = prompts.map(() => context.getSequence());
  await Promise.all(
    sequences.map((sequence, at) => sequence.evaluateWithoutGeneratingNewTokens(prompts[at].slice(0, -1))),
  );
  const runs = await Promise.all(
    sequences.map(async (sequence, at) => {
      const generated = sequence.evaluate(prompts[at].slice(-1), GREEDY);
      const times = [];
      while (times.length < tokens) {
        if ((await generated.next()).done) break;
        times.push(now());
      }
      await generated.return();
      return times;
    }),
  );
  for (const sequence of sequences) sequence.dispose();
  const start = Math.min(...runs.map(([first]) => first));
  const end = Math.max(...runs.map((times) => times.at(-1)));
  const generated = runs.reduce((sum, times) => sum + times.length - 1, 0);
  return { streams: (generated / (end - start)) * 1000 };
}

async function answer({ id, kind, prompts, tokens, depth }) {
  try {
    const result =
      kind === "measure" ? await measure(prompts, tokens, depth) : await measureStreams(prompts, tokens);
    process.send({ id, ...result });
  } catch (error) {
    process.send({ id, problem: String(error) });
  }
}

process.on("message", (message) => void answer(message));
process.on("disconnect", () => process.exit());
process.send({ id: 0, version: llama.llamaCppRelease.release, features: llama.systemInfo });
