import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { FORMATS } from "./dequantize.ts";
import { COPY_FORMATS } from "./make-quantized-blocks.ts";
import { makeQuantized } from "./make-quantized.ts";

const MINI = path.join(import.meta.dirname, "../../models/daybreak-mini.gguf");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "quantized-"));

afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Weights of all sizes and signs, larger in later groups. */
function someWeights(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, index) => Math.sin(index * 7.3) * (1 + index / count));
}

describe("copies of models in other types", () => {
  it.each([
    ["Q8_0", 0.01],
    ["Q6_K", 0.05],
    ["Q5_K", 0.06],
    ["Q4_K", 0.12],
    ["Q4_0", 0.12],
    ["Q4_1", 0.1],
    ["Q5_0", 0.06],
    ["Q5_1", 0.06],
    ["IQ4_NL", 0.15],
    ["MXFP4", 0.2],
    ["Q2_K", 0.35],
    ["Q3_K", 0.2],
    ["IQ4_XS", 0.15],
  ] as const)("writes %s blocks that a reader of the format turns back to within %d", (type, most) => {
    const format = COPY_FORMATS[type];
    const weights = someWeights(format.weights);
    const block = new DataView(new ArrayBuffer(format.bytes));
    format.quantize(weights, block, 0);
    const back = FORMATS[type].dequantize(block);
    const squares = weights.reduce((sum, weight, index) => sum + (weight - back[index]!) ** 2, 0);
    expect(Math.sqrt(squares / weights.length)).toBeLessThan(most);
  });

  it("keeps a model as it is when its type stays the same", () => {
    const copy = path.join(folder, "same.gguf");
    makeQuantized(MINI, copy, "Q8_0");
    expect(fs.readFileSync(copy).equals(fs.readFileSync(MINI))).toBe(true);
  });

  // That copies in other types fit together as well is seen where the engine loads them.
  it("makes a copy in Q4_K that takes 4.5 bits for each weight", () => {
    const copy = path.join(folder, "copy.gguf");
    makeQuantized(MINI, copy, "Q4_K");
    const ratio = fs.statSync(copy).size / fs.statSync(MINI).size;
    // Names, norms and the vocabulary, which stay as they are, are a small part of the file.
    expect(ratio).toBeCloseTo(4.5 / 8.5, 1);
  });
});
