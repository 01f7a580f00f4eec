import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { setEnvironmentData } from "node:worker_threads";
import { EngineCore } from "../../src/engine/core/engine-core.ts";
import { warmUpBeforeRequests } from "../../src/engine/core/warm-up.ts";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";
import { openEngineFiles } from "../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../src/engine/host/node-platform.ts";
import { engineSpecSchema } from "../../src/engine/protocol/engine-spec.ts";
import { preparedEngine } from "./engine-fixture.ts";

/**
 * Loads a model onto Dawn's null backend, which executes nothing, warms it up, and prints as JSON how its weights and programs got there. A process of its
 * own, because Dawn's classes are patched once.
 *
 * Arguments: the engine's specification as JSON, a folder to write to.
 */

export interface Loaded {
  /** Bytes of the largest write. */
  readonly largest: number;
  /** Bytes written from the heap, and from other memory, without parameters of programs. */
  readonly fromHeap: number;
  readonly loadedOutside: number;
  /** Programs that were compiled beside each other, how many at once, and how many were waited for one by one. */
  readonly inParallel: number;
  readonly atOnce: number;
  readonly oneByOne: number;
  readonly gpuLayers: number;
}

const COUNTING_DAWN = `
import { createRequire } from "node:module";
import { getEnvironmentData } from "node:worker_threads";
const { realDawn, memory } = getEnvironmentData("count-loading");
const { create, globals } = createRequire(import.meta.url)(realDawn);
const counts = new Float64Array(memory);
const { writeBuffer } = globals.GPUQueue.prototype;
const UNIFORM = 0x40;
globals.GPUQueue.prototype.writeBuffer = function (buffer, at, data, offset, size) {
  if (buffer.usage & UNIFORM) return writeBuffer.call(this, buffer, at, data, offset, size);
  counts[0] = Math.max(counts[0], size);
  counts[data.buffer instanceof SharedArrayBuffer ? 1 : 2] += size;
  return writeBuffer.call(this, buffer, at, data, offset, size);
};
const { createComputePipeline, createComputePipelineAsync } = globals.GPUDevice.prototype;
globals.GPUDevice.prototype.createComputePipeline = function (descriptor) {
  counts[3] += 1;
  return createComputePipeline.call(this, descriptor);
};
let compiling = 0;
globals.GPUDevice.prototype.createComputePipelineAsync = async function (descriptor) {
  counts[4] += 1;
  counts[5] = Math.max(counts[5], ++compiling);
  const made = await createComputePipelineAsync.call(this, descriptor);
  compiling -= 1;
  return made;
};
export { create, globals };
`;

const [, , specJson = "", folder = ""] = process.argv;
const spec = engineSpecSchema.parse(JSON.parse(specJson));
if (!spec.gpu) throw new Error("the specification names no GPU");

const counts = new Float64Array(new SharedArrayBuffer(6 * Float64Array.BYTES_PER_ELEMENT));
setEnvironmentData("count-loading", { realDawn: findDawn(), memory: counts.buffer });
const dawnPath = path.join(folder, "counting-dawn.mjs");
fs.writeFileSync(dawnPath, COUNTING_DAWN);
const { wasmPath, heapLimitBytes } = await preparedEngine();
const platform = createNodePlatform(pathToFileURL(wasmPath).href, () => {}, {
  heapLimitBytes,
  gpu: { dawnPath, flags: ["backend=null", `adapter=${spec.gpu.name}`], maxWaitMs: 600_000 },
});
const engine = await EngineCore.load(platform, spec, openEngineFiles(spec));
const [largest = 0, fromHeap = 0, loadedOutside = 0] = counts;
await warmUpBeforeRequests(engine, spec);
const [oneByOne = 0, inParallel = 0, atOnce = 0] = counts.subarray(3);
const { gpuLayers } = engine.info;
const loaded: Loaded = { largest, fromHeap, loadedOutside, inParallel, atOnce, oneByOne, gpuLayers };
console.log(JSON.stringify(loaded));
process.exit();
