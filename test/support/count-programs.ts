import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { setEnvironmentData } from "node:worker_threads";
import { EngineCore } from "../../src/engine/core/engine-core.ts";
import { deferredSteps, warmUpBeforeRequests } from "../../src/engine/core/warm-up.ts";
import { deviceFlags } from "../../src/engine/gpu/dawn.ts";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";
import { openEngineFiles } from "../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../src/engine/host/node-platform.ts";
import { engineSpecSchema } from "../../src/engine/protocol/engine-spec.ts";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import { chatRequest, NEVER, promptRequest } from "./engine-fixture.ts";
import { generated } from "./generated.ts";
import { tinyPng } from "./tiny-png.ts";

/**
 * Loads a model onto a GPU, warms it up, sends it texts of several lengths, and a image where it sees, and prints as
 * JSON how many programs had been compiled after each of the three, and what llama.cpp says of where things are. A process of its own, because a driver may stay in it for long.
 *
 * Arguments: the engine's specification as JSON, a folder to write to.
 */

/** Dawn, which also counts the programs that it compiles. */
const COUNTING_DAWN = `
import { createRequire } from "node:module";
import { getEnvironmentData } from "node:worker_threads";
const { realDawn, memory } = getEnvironmentData("count-programs");
const { create, globals } = createRequire(import.meta.url)(realDawn);
const counts = new Int32Array(memory);
for (const name of ["createComputePipeline", "createComputePipelineAsync"]) {
  const plain = globals.GPUDevice.prototype[name];
  globals.GPUDevice.prototype[name] = function (...args) {
    counts[0] += 1;
    return plain.apply(this, args);
  };
}
export { create, globals };
`;

const [, , specJson = "", folder = ""] = process.argv;
const spec = engineSpecSchema.parse(JSON.parse(specJson));
if (!spec.gpu) throw new Error("the specification names no GPU");

const counts = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
setEnvironmentData("count-programs", { realDawn: findDawn(), memory: counts.buffer });
const dawnPath = path.join(folder, "counting-dawn.mjs");
fs.writeFileSync(dawnPath, COUNTING_DAWN);

const log: string[] = [];
const keep = (_level: string, line: string): void => void log.push(line);
const platform = createNodePlatform(pathToFileURL(STOCK_WASM_PATH).href, keep, {
  gpu: { dawnPath, flags: deviceFlags(spec.gpu), maxWaitMs: 600_000 },
});
const engine = await EngineCore.load(platform, spec, openEngineFiles(spec));
const programs = [counts[0]];
await warmUpBeforeRequests(engine, spec);
for (const step of deferredSteps(engine, spec)) await step({ signal: NEVER });
programs.push(counts[0]);
for (const length of [1, 3, 9, 30]) {
  const text = "a".repeat(length);
  if (spec.purpose === "embed") await engine.embed(text, NEVER);
  else await Array.fromAsync(generated(engine, promptRequest(text, { maxTokens: 4 }), NEVER));
}
if (engine.info.hasImageInput) {
  const image = chatRequest([
    { type: "image", data: tinyPng(64, 64) },
    { type: "text", text: "a" },
  ]);
  await Array.fromAsync(generated(engine, image, NEVER));
}
programs.push(counts[0]);
const placed = log.filter((line) => / buffer size =|^clip_ctx:/.test(line));
console.log(JSON.stringify({ programs, placed }));
process.exit();
