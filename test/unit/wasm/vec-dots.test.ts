import { beforeAll, describe, expect, it } from "vitest";
import { FORMATS, type TypeName } from "../../support/dequantize.ts";
import { KernelHost } from "../../support/kernel-host.ts";
import { randoms } from "../../support/randoms.ts";
import { VEC_DOTS } from "../../../wasm/quantizations.ts";

let host: KernelHost;
beforeAll(async () => {
  host = await KernelHost.start();
});

const COUNT = 768;
/** Rounding of f32 sums, relative to the sum of the magnitudes. */
const TOLERANCE = 3e-6;
/** Halves as bits. */
const HALF = { two: 0x4000, nan: 0x7e00 };
/** Scales of blocks: moderate, subnormal, zero, negative, the largest. */
const WEIGHT_SCALES = [0x3400, 0x3400, 0x0003, 0x0000, 0xb400, 0x7bff];

/** Integers from 0 up to, and without, a limit; the same for the same seed. */
function randomInteger(seed: number): (below: number) => number {
  const random = randoms(seed);
  return (below) => Math.floor(random() * below);
}

/** Activations in the format of the kernel's name, with a scale of 2. */
function packActivations(values: readonly number[], format: string): Uint8Array {
  const [weights, bytes, at] =
    format === "q8_K" ? [256, 292, 4] : format === "q8_1" ? [32, 36, 4] : [32, 34, 2];
  const packed = new DataView(new ArrayBuffer((values.length / weights) * bytes));
  for (let start = 0; start < packed.byteLength; start += bytes) {
    const block = values.slice((start / bytes) * weights, (start / bytes + 1) * weights);
    const sum = (from: number, to: number): number =>
      block.slice(from, to).reduce((total, value) => total + value, 0);
    if (format === "q8_K") {
      packed.setFloat32(start, 2, true);
      for (let group = 0; group < 16; group++) {
        packed.setInt16(start + 260 + 2 * group, sum(16 * group, 16 * group + 16), true);
      }
    } else packed.setUint16(start, HALF.two, true);
    if (format === "q8_1") packed.setFloat16(start + 2, 2 * sum(0, 32), true);
    for (const [index, value] of block.entries()) packed.setInt8(start + at + index, value);
  }
  return new Uint8Array(packed.buffer);
}

describe.each(VEC_DOTS)("$name", ({ kernel, name }) => {
  const [, type, activationFormat] = /^ggml_vec_dot_(.+)_(q8_.)$/.exec(name)!;
  const found = Object.keys(FORMATS).find((candidate) => candidate.toLowerCase() === type!.toLowerCase());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const format = FORMATS[found as Exclude<TypeName, "F32" | "F16" | "BF16">];

  it.each([
    ["ordinary", (random: (below: number) => number) => random(255) - 127],
    ["extreme", (random: (below: number) => number) => (random(2) === 0 ? -127 : 127)],
    ["zero", () => 0],
  ])("equals the plain definition for %s activations", (_, draw) => {
    const random = randomInteger(kernel.length);
    const weights = new DataView(new ArrayBuffer((COUNT / format.weights) * format.bytes));
    const values: number[] = [];
    for (let start = 0; start < weights.byteLength; start += format.bytes) {
      for (let at = 0; at < format.bytes; at++) weights.setUint8(start + at, random(256));
      for (const at of format.halves) {
        weights.setUint16(start + at, WEIGHT_SCALES[random(WEIGHT_SCALES.length)]!, true);
      }
      if (type === "mxfp4") weights.setUint8(start, 120 + random(12));
      values.push(...format.dequantize(new DataView(weights.buffer, start, format.bytes)));
    }
    const activations = Array.from({ length: COUNT }, () => draw(random));
    // A block's sum is stored as a half: sums of neighbors of opposite signs and one more are exact.
    if (activationFormat === "q8_1") {
      for (let at = 1; at < COUNT; at += 2)
        activations[at] = at % 32 === 31 ? activations[at]! : -activations[at - 1]!;
    }
    const products = activations.map((activation, index) => 2 * activation * values[index]!);
    const expected = products.reduce((total, product) => total + product, 0);
    const magnitude = products.reduce((total, product) => total + Math.abs(product), 0);
    const actual = host.vecDot(
      kernel,
      COUNT,
      new Uint8Array(weights.buffer),
      packActivations(activations, activationFormat!),
    );
    expect(Math.abs(actual - expected)).toBeLessThanOrEqual(TOLERANCE * magnitude);
  });

  it("preserves a NaN in the scale of a block of activations", () => {
    const random = randomInteger(1);
    const weights = new Uint8Array((COUNT / format.weights) * format.bytes).map(() => 1 + random(100));
    const activations = packActivations(Array<number>(COUNT).fill(1), activationFormat!);
    const last =
      activations.length - (activationFormat === "q8_K" ? 292 : activationFormat === "q8_1" ? 36 : 34);
    const view = new DataView(activations.buffer);
    if (activationFormat === "q8_K") view.setFloat32(last, Number.NaN, true);
    else view.setUint16(last, HALF.nan, true);
    expect(host.vecDot(kernel, COUNT, weights, activations)).toBe(Number.NaN);
  });
});
