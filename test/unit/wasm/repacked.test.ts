import { beforeAll, describe, expect, it } from "vitest";
import { FORMATS, halfToNumber, TYPE } from "../../support/dequantize.ts";
import { KernelHost, type MatrixProblem } from "../../support/kernel-host.ts";
import {
  areNanIn,
  EIGHT_BIT_TOLERANCE,
  exactActivations,
  extremeActivations,
  F32_TOLERANCE,
  randomWeights,
  reference,
  worstError,
} from "../../support/matrix-problems.ts";
import { randoms } from "../../support/randoms.ts";

let host: KernelHost;
beforeAll(async () => {
  host = await KernelHost.start();
});

const REPACKED = ["Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4", "IQ4_NL", "IQ4_XS"] as const;
const ROWS = 48;
const K = 768;

/** Weights of a model on the CPU, after loading. */
function problemOf(type: (typeof REPACKED)[number], columns: number, rows = ROWS, k = K) {
  const random = randoms(columns + 100 * TYPE[type]);
  const weights = randomWeights(type, rows, k, random);
  const activations = exactActivations(columns, k, random);
  const problem = { type: TYPE[type], weights: weights.bytes, rows, activations, k, backends: 1 };
  return { problem, expected: reference(weights.values, activations, rows, k), values: weights.values };
}

function areSame(some: Uint8Array, others: Uint8Array): boolean {
  return some.length === others.length && some.every((byte, at) => byte === others[at]);
}

describe.each(REPACKED)("repacked %s weights", (type) => {
  // One column, and more in groups of up to four.
  it.each([1, 2, 3, 4, 5, 6, 8, 11, 13, 14, 17])("times %i columns equal the plain definition", (columns) => {
    const { problem, expected } = problemOf(type, columns);
    const prepared = host.prepare(problem);
    expect(areSame(prepared.weights(), problem.weights)).toBe(false);
    prepared.run();
    const { values, fellBack } = prepared.read();
    expect(fellBack).toBe(false);
    expect(worstError(values, expected)).toBeLessThan(F32_TOLERANCE);
  });

  it("take scales that are subnormal halves, of either sign", () => {
    const weights = randomWeights(
      type,
      ROWS,
      K,
      randoms(TYPE[type]),
      [0x0001, 0x03ff, 0x8001, 0x83ff, 0x0155],
    );
    for (const columns of [1, 2, 4, 13]) {
      const { problem } = problemOf(type, columns);
      const result = host.multiply({ ...problem, weights: weights.bytes });
      const expected = reference(weights.values, problem.activations, ROWS, K);
      expect(worstError(result.values, expected)).toBeLessThan(F32_TOLERANCE);
    }
  });

  it("take rows of one and three blocks, and one tile of rows", () => {
    for (const columns of [1, 4]) {
      for (const blocks of [1, 3]) {
        const { problem, expected } = problemOf(type, columns, 16, blocks * FORMATS[type].weights);
        expect(worstError(host.multiply(problem).values, expected)).toBeLessThan(F32_TOLERANCE);
      }
    }
  });

  it("take activations whose scales are the largest and the smallest halves", () => {
    for (const columns of [2, 4, 13]) {
      const { problem, values } = problemOf(type, columns);
      const activations = extremeActivations(columns, K, randoms(columns));
      const result = host.multiply({ ...problem, activations });
      expect(worstError(result.values, reference(values, activations, ROWS, K))).toBeLessThan(F32_TOLERANCE);
    }
  });

  it("preserve a NaN, only in its column", () => {
    for (const columns of [1, 3, 4, 13]) {
      const { problem } = problemOf(type, columns);
      problem.activations[K * (columns - 1) + 300] = Number.NaN;
      expect(areNanIn([columns - 1], host.multiply(problem).values, ROWS)).toBe(true);
    }
  });

  it("with ordinary activations stay within the error of eight-bit activations", () => {
    const random = randoms(TYPE[type]);
    for (const columns of [1, 3, 13]) {
      const { problem, values } = problemOf(type, columns);
      const activations = Float32Array.from(
        { length: columns * K },
        () => (random() - 0.5) * 10 ** (random() * 6 - 3),
      );
      const result = host.multiply({ ...problem, activations });
      expect(worstError(result.values, reference(values, activations, ROWS, K))).toBeLessThan(
        EIGHT_BIT_TOLERANCE,
      );
    }
  });

  it("have the same bits for a column alone and among others", () => {
    const { problem } = problemOf(type, 9);
    const firstColumns = (count: number): Float32Array =>
      host.multiply({ ...problem, activations: problem.activations.slice(0, count * K) }).values;
    const together = firstColumns(9);
    for (const count of [1, 2, 3, 4, 5, 6, 7])
      expect([...firstColumns(count)]).toEqual([...together.subarray(0, count * ROWS)]);
    const alone = host.multiply({ ...problem, activations: problem.activations.slice(8 * K) }).values;
    expect([...alone]).toEqual([...together.subarray(8 * ROWS)]);
  });

  it("give zero for zero activations", () => {
    for (const columns of [1, 3]) {
      const { problem } = problemOf(type, columns);
      const result = host.multiply({ ...problem, activations: new Float32Array(columns * K) });
      expect(result.values.every((value) => value === 0)).toBe(true);
    }
  });

  it("handle extreme weights and activations", () => {
    for (const [byte, sign] of [
      [0x00, -1],
      [0xff, 1],
    ] as const) {
      for (const columns of [1, 4]) {
        const { problem } = problemOf(type, columns);
        const weights = randomWeights(type, ROWS, K, () => byte / 256);
        const activations = new Float32Array(columns * K).fill(127 * sign);
        const result = host.multiply({ ...problem, weights: weights.bytes, activations });
        const expected = reference(weights.values, activations, ROWS, K);
        expect(worstError(result.values, expected)).toBeLessThan(F32_TOLERANCE);
      }
    }
  });

  it("are restored permanently when a graph uses them in another way", () => {
    const { problem, expected } = problemOf(type, 2);
    const prepared = host.prepare(problem);
    prepared.planView();
    expect(areSame(prepared.weights(), problem.weights)).toBe(true);
    prepared.reserve();
    expect(areSame(prepared.weights(), problem.weights)).toBe(true);
    prepared.run();
    expect(worstError(prepared.read().values, expected)).toBeLessThan(F32_TOLERANCE);
  });

  it("give look-ups the same rows as in the file", () => {
    const { problem } = problemOf(type, 1);
    const prepared = host.prepare(problem);
    const rowBytes = problem.weights.length / ROWS;
    const rows = [0, 7, 13, 20, 47];
    const expected = rows.map((row) =>
      problem.weights.slice(row * rowBytes, row * rowBytes + Math.min(K, rowBytes)),
    );
    expect(prepared.lookUp(rows).every((row, at) => areSame(row, expected[at]!))).toBe(true);
    expect(areSame(prepared.weights(), problem.weights)).toBe(false);
  });
});

describe("every finite half", () => {
  // One weight of 1 in a row, multiplied by an activation of 127.
  it.each([1, 4])("scales a block of Q8_0 correctly, in %i columns", (columns) => {
    const halves = Uint16Array.from({ length: 0x1_0000 }, (_, bits) => bits).filter(
      (bits) => (bits & 0x7c00) !== 0x7c00,
    );
    const { bytes, weights: k } = FORMATS.Q8_0;
    const weights = new Uint8Array(halves.length * bytes);
    for (const [row, half] of halves.entries()) weights.set([half & 255, half >> 8, 1], row * bytes);
    const activations = Float32Array.from({ length: columns * k }, (_, at) => (at % k === 0 ? 127 : 0));
    const problem = { type: TYPE.Q8_0, weights, rows: halves.length, activations, k, backends: 1 };
    const expected = Array.from(halves, (half) => 127 * halfToNumber(half));
    const { values } = host.multiply(problem);
    for (let column = 0; column < columns; column++) {
      const found = values.subarray(column * halves.length, (column + 1) * halves.length);
      expect(found.findIndex((value, at) => value !== expected[at])).toBe(-1);
    }
  });
});

describe("powers of two that scale MXFP4", () => {
  // One weight of 1 in a row, whose code is 2; its activation is 127.
  it.each([1, 4])("scale correctly, except two that would be subnormal floats, in %i columns", (columns) => {
    const { bytes, weights: k } = FORMATS.MXFP4;
    const rows = 256;
    const weights = new Uint8Array(rows * bytes);
    for (let exponent = 0; exponent < rows; exponent++) weights.set([exponent, 2], exponent * bytes);
    const activations = Float32Array.from({ length: columns * k }, (_, at) => (at % k === 0 ? 127 : 0));
    const { values } = host.multiply({ type: TYPE.MXFP4, weights, rows, activations, k, backends: 1 });
    const expected = Array.from({ length: rows }, (_, exponent) =>
      exponent < 2 ? 0 : Math.fround(127 * 2 ** (exponent - 127)),
    );
    for (let column = 0; column < columns; column++)
      expect([...values.subarray(column * rows, (column + 1) * rows)]).toEqual(expected);
  });
});

function isLeft(change: Partial<MatrixProblem>): boolean {
  const { problem } = problemOf("Q4_0", 1);
  const prepared = host.prepare({ ...problem, ...change });
  return areSame(prepared.weights(), change.weights ?? problem.weights);
}

function someRows(type: "Q5_0" | "Q4_0", rows: number): Uint8Array {
  return randomWeights(type, rows, K, randoms(1)).bytes;
}

describe("weights are not repacked", () => {
  it("with several backends, because another one would copy them", () => {
    expect(isLeft({ backends: 2 })).toBe(true);
  });
  it("if they do not belong to a model, like a quantized KV cache", () => {
    expect(isLeft({ backends: undefined })).toBe(true);
  });
  it("if the number of rows is not a multiple of sixteen", () => {
    expect(isLeft({ rows: 40, weights: someRows("Q4_0", 40) })).toBe(true);
  });
  it("in formats that would not be faster", () => {
    expect(isLeft({ type: TYPE.Q5_0, weights: someRows("Q5_0", ROWS) })).toBe(true);
  });
  it("if they are several matrices of a batch that are not experts", () => {
    expect(isLeft({ rows: 24, matrices: 2, heads: 2, activations: new Float32Array(2 * K) })).toBe(true);
  });
});
