import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { setEnvironmentData } from "node:worker_threads";
import { generated } from "../../../test/support/generated.ts";
import { EngineCore } from "../../../src/engine/core/engine-core.ts";
import { findDawn } from "../../../src/engine/gpu/probe-gpu.ts";
import { openEngineFiles } from "../../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../../src/engine/host/node-platform.ts";
import { greedyRequest } from "./greedy-request.ts";
import { type HostCost, type HostCostTask, type StepCost, COUNTS } from "./host-cost.ts";

// Loads a model onto Dawn's null backend, generates, and prints a HostCost as JSON. A separate process, because Dawn's
// classes are patched once. Argument: a HostCostTask as JSON.

const MAX_WAIT_MS = 600_000;
/** In front of the times of reads, which null-dawn.mjs writes down: how many there were, the counts, and what is being compiled. */
const COMPILING = 1 + COUNTS.length;
const FIRST_TIME = COMPILING + 1;
const MAX_READS = 65_536;

const task: HostCostTask = JSON.parse(process.argv[2] ?? "");
const { spec, tokens, promptTokens, repeats } = task;
if (!spec.gpu) throw new Error("the specification names no GPU");

const memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT * (FIRST_TIME + MAX_READS));
const figures = new Float64Array(memory);
setEnvironmentData("daybreak-host-cost", { realDawn: findDawn(), memory, counts: task.counts });
const platform = createNodePlatform(pathToFileURL(task.engine.wasmPath).href, () => {}, {
  gpu: {
    dawnPath: path.join(import.meta.dirname, "null-dawn.mjs"),
    flags: ["backend=null", `adapter=${spec.gpu.name}`],
    maxWaitMs: MAX_WAIT_MS,
    replays: spec.gpu.replay,
  },
  heapLimitBytes: task.engine.heapLimitBytes,
});
const engine = await EngineCore.load(platform, spec, openEngineFiles(spec));
// llama.cpp goes to the CPU in silence where it finds no adapter that it can use.
if (engine.info.gpuLayers === 0) throw new Error("no layer is on the GPU, so there is nothing to measure");

// Measured after V8 has compiled what it will, and Dawn what programs are fused into.
for (let time = 0; time < 2; time++) {
  await decode();
  await prefill();
  while ((figures[COMPILING] ?? 0) > 0) await setTimeout(20);
}
const cost: HostCost = { decode: await decode(), prefill: await prefill() };
console.log(JSON.stringify(cost));
process.exit();

/** @returns how many tokens the prompt has */
async function generate(words: number, length: number): Promise<number> {
  const request = greedyRequest(" a".repeat(words), length);
  let read = 0;
  for await (const event of generated(engine, request, new AbortController().signal))
    if (event.type === "done") read = event.usage.promptTokens;
  return read;
}

/** Measures one generated token. */
async function decode(): Promise<StepCost> {
  const before = Float64Array.from(figures.subarray(0, FIRST_TIME));
  await generate(2, tokens);
  return costSince(before, 1);
}

/** Measures one step of a prompt, with the token that comes with the last one. */
async function prefill(): Promise<StepCost> {
  // How many tokens a word has depends on the model.
  const [one, two] = [await generate(1, 1), await generate(2, 1)];
  const words = 1 + Math.floor((promptTokens - one) / (two - one));
  const before = Float64Array.from(figures.subarray(0, FIRST_TIME));
  const steps = Math.ceil(promptTokens / spec.batchSize);
  for (let repeat = 0; repeat <= repeats; repeat++) {
    const read = await generate(words, 1);
    if (Math.ceil(read / spec.batchSize) !== steps) throw new Error(`the prompt has ${read} tokens`);
  }
  return costSince(before, steps);
}

/** @param steps between two reads */
function costSince(before: Float64Array, steps: number): StepCost {
  const first = before[0] ?? 0;
  const reads = (figures[0] ?? 0) - first;
  const times = Array.from(
    { length: reads },
    (_, at) => figures[FIRST_TIME + ((first + at) % MAX_READS)] ?? 0,
  );
  const each = times
    .slice(1)
    .map((time, at) => (time - (times[at] ?? 0)) / steps)
    .toSorted((a, b) => a - b);
  const counts = COUNTS.map((name, at) => [
    name,
    ((figures[1 + at] ?? 0) - (before[1 + at] ?? 0)) / (reads * steps),
  ]);
  return { ms: each[each.length >> 1] ?? NaN, ...Object.fromEntries(counts) };
}
