import { describe, expect, it } from "vitest";
import { OperatorHost, TENSOR } from "../../support/operator-host.ts";
import { numbersFrom } from "./numbers.ts";

const OP = { norm: 24, rmsNorm: 25 } as const;
const EPSILON = 1e-5;

const host = await OperatorHost.start();
const parameters = new Int32Array(new Float32Array([EPSILON]).buffer);

function run(op: number, x: Float32Array, ne: readonly number[], threads = 1): Float32Array | undefined {
  return host.run({ op, parameters, sources: [{ type: TENSOR.f32, ne, data: x }], ne, threads });
}

/** Each row, less its mean if `isCentered`, divided by the root of its mean square. */
function reference(x: Float32Array, width: number, isCentered: boolean): number[] {
  return Array.from({ length: x.length / width }, (_, row) => {
    const values = Array.from(x.subarray(row * width, (row + 1) * width));
    const mean = isCentered ? values.reduce((sum, value) => sum + value) / width : 0;
    const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
    return values.map((value) => (value - mean) / Math.sqrt(square + EPSILON));
  }).flat();
}

/** Largest difference; normalized numbers are about 1. */
function farthest(found: Float32Array | undefined, expected: readonly number[]): number {
  return Math.max(...expected.map((value, at) => Math.abs((found?.[at] ?? Number.NaN) - value)));
}

describe.each([
  ["RMS_NORM", OP.rmsNorm, false],
  ["NORM", OP.norm, true],
] as const)("%s", (_, op, isCentered) => {
  it.each([1, 3, 4, 7, 64, 1537])("is accurate for rows of %i", (width) => {
    const x = numbersFrom(width, width * 6, 8);
    for (const threads of [1, 4]) {
      expect(farthest(run(op, x, [width, 3, 2], threads), reference(x, width, isCentered))).toBeLessThan(
        2e-6,
      );
    }
  });

  it("of zeros is zero", () => {
    expect(run(op, new Float32Array(8), [8])).toEqual(new Float32Array(8));
  });

  it("reads rows that are parts of longer ones, like heads of queries", () => {
    const x = numbersFrom(2, 40, 8);
    const source = { type: TENSOR.f32, ne: [8, 2, 2], nb: [4, 40, 80, 160], data: x };
    const rows = Float32Array.from({ length: 32 }, (__, at) => x[Math.floor(at / 8) * 10 + (at % 8)]!);
    const found = host.run({ op, parameters, sources: [source], ne: [8, 2, 2] });
    expect(farthest(found, reference(rows, 8, isCentered))).toBeLessThan(2e-6);
  });
});

it("non-contiguous rows are left to llama.cpp", () => {
  const source = { type: TENSOR.f32, ne: [4, 2], nb: [8, 4, 32, 32], data: new Float32Array(8) };
  expect(host.run({ op: OP.rmsNorm, parameters, sources: [source], ne: [4, 2] })).toBe(undefined);
});
