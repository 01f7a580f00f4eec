import fs from "node:fs";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { setEnvironmentData } from "node:worker_threads";
import { EngineCore } from "../../src/engine/core/engine-core.ts";
import { deviceFlags } from "../../src/engine/gpu/dawn.ts";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";
import { openEngineFiles } from "../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../src/engine/host/node-platform.ts";
import { engineSpecSchema } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { chatRequest, collect, NEVER, preparedEngine, promptRequest } from "./engine-fixture.ts";
import { generated } from "./generated.ts";

/**
 * Loads a model onto a GPU that does not say that it is software, so that programs are fused as on a real one, and prints as JSON
 * what it generates, and how many programs ran for it. A process of its own, because a driver may stay in it for long.
 *
 * Arguments: the engine's specification as JSON, a folder to write to, whether fused programs can be compiled and steps repeated,
 * and how many buffers a program may bind.
 */

const TOKENS = 24;

export interface FusedRun {
  readonly programs: number;
  readonly logprobs: readonly TokenLogprob[];
  /** With several slots: answers beside each other, of which the model is sure. */
  readonly texts: readonly string[];
  /** Programs that were compiled in the background, and those of them that Dawn refused. */
  readonly compiled: number;
  readonly refused: number;
}

const COUNTING_DAWN = `
import { createRequire } from "node:module";
import { getEnvironmentData } from "node:worker_threads";
const { realDawn, memory, compiles, mostBuffers } = getEnvironmentData("fused-programs");
const { create, globals } = createRequire(import.meta.url)(realDawn);
const counts = new Int32Array(memory);
const { requestDevice } = globals.GPUAdapter.prototype;
globals.GPUAdapter.prototype.requestDevice = async function (...args) {
  const device = await requestDevice.apply(this, args);
  const limits = {};
  for (const name in device.limits) limits[name] = device.limits[name];
  limits.maxStorageBuffersPerShaderStage = Math.min(limits.maxStorageBuffersPerShaderStage, mostBuffers);
  Object.defineProperty(device, "limits", { value: limits });
  return Object.defineProperty(device, "adapterInfo", { value: { isFallbackAdapter: false } });
};
const { dispatchWorkgroups } = globals.GPUComputePassEncoder.prototype;
globals.GPUComputePassEncoder.prototype.dispatchWorkgroups = function (...args) {
  counts[0] += 1;
  return dispatchWorkgroups.apply(this, args);
};
const { createComputePipelineAsync, popErrorScope } = globals.GPUDevice.prototype;
globals.GPUDevice.prototype.createComputePipelineAsync = async function (...args) {
  // llama.cpp's own have a name.
  if (args[0].label) return await createComputePipelineAsync.apply(this, args);
  if (!compiles) throw new Error("refused");
  counts[3] += 1;
  try {
    const made = await createComputePipelineAsync.apply(this, args);
    counts[1] += 1;
    return made;
  } catch (error) {
    counts[2] += 1;
    throw error;
  }
};
globals.GPUDevice.prototype.popErrorScope = async function () {
  const problem = await popErrorScope.call(this);
  if (problem) counts[2] += 1;
  return problem;
};
export { create, globals };
`;

const [, , specJson = "", folder = "", compiles, mostBuffers] = process.argv;
const spec = engineSpecSchema.parse(JSON.parse(specJson));
if (!spec.gpu) throw new Error("the specification names no GPU");

const counts = new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT));
setEnvironmentData("fused-programs", {
  realDawn: findDawn(),
  memory: counts.buffer,
  compiles: compiles === "true",
  mostBuffers: Number(mostBuffers),
});
const dawnPath = path.join(folder, "fusing-dawn.mjs");
fs.writeFileSync(dawnPath, COUNTING_DAWN);
const { wasmPath, heapLimitBytes } = await preparedEngine();
const platform = createNodePlatform(pathToFileURL(wasmPath).href, () => {}, {
  heapLimitBytes,
  gpu: { dawnPath, flags: deviceFlags(spec.gpu), maxWaitMs: 600_000, replays: compiles === "true" },
});
const engine = await EngineCore.load(platform, spec, openEngineFiles(spec));

async function generate(): Promise<TokenLogprob[]> {
  const logprobs: TokenLogprob[] = [];
  const request = promptRequest("once", {
    maxTokens: TOKENS,
    logprobs: 5,
    cachePrompt: false,
    sampling: { temperature: 0, ignoreEos: true },
  });
  for await (const event of generated(engine, request, NEVER)) {
    if (event.type === "text-delta") logprobs.push(...(event.logprobs ?? []));
  }
  return logprobs;
}

/** Steps of several slots have other shapes from run to run, so that only what the model is sure of stays the same. */
async function answerTogether(): Promise<string[]> {
  if (spec.slots === 1) return [];
  const questions = ["Who are you?", "Which port does Daybreak use?", "How do I stop the server?"];
  return await Promise.all(
    questions.map(async (question) => {
      const events = await collect(generated(engine, chatRequest(question, { maxTokens: TOKENS }), NEVER));
      return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
    }),
  );
}

// What is used twice begins to be compiled.
for (let time = 0; time < 2; time++) {
  await generate();
  await answerTogether();
}
while ((counts[1] ?? 0) + (counts[2] ?? 0) < (counts[3] ?? 0)) await setTimeout(50);
await generate();
const before = counts[0] ?? 0;
const logprobs = await generate();
const programs = ((counts[0] ?? 0) - before) / TOKENS;
const run: FusedRun = {
  programs,
  logprobs,
  texts: await answerTogether(),
  compiled: counts[1] ?? 0,
  refused: counts[2] ?? 0,
};
console.log(JSON.stringify(run));
process.exit();
