import { beforeAll, describe, expect, it } from "vitest";
import { FORMATS, halfToNumber, TYPE, type TypeName } from "../../support/dequantize.ts";
import { KernelHost } from "../../support/kernel-host.ts";
import {
  areNanIn,
  BLOCK_TYPES,
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

describe.each(BLOCK_TYPES)("%s weights", (type) => {
  // Up to 11 columns use GEMV, four at a time; more use GEMM, whose last group of four is half empty with 14.
  it.each([1, 2, 3, 4, 6, 11, 12, 14, 17])("times %i columns equal the plain definition", (columns) => {
    const random = randoms(columns + 100 * TYPE[type]);
    const [rows, k] = [28, 768];
    const weights = randomWeights(type, rows, k, random);
    const activations = exactActivations(columns, k, random);
    const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
    expect(result.fellBack).toBe(false);
    expect(worstError(result.values, reference(weights.values, activations, rows, k))).toBeLessThan(
      F32_TOLERANCE,
    );
  });

  it("with ordinary activations stay within the error of eight-bit activations", () => {
    const random = randoms(TYPE[type]);
    const [rows, k] = [8, 512];
    const weights = randomWeights(type, rows, k, random);
    for (const columns of [1, 5, 13]) {
      const activations = Float32Array.from(
        { length: columns * k },
        () => (random() - 0.5) * 10 ** (random() * 6 - 3),
      );
      const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
      expect(worstError(result.values, reference(weights.values, activations, rows, k))).toBeLessThan(
        EIGHT_BIT_TOLERANCE,
      );
    }
  });

  it("give zero for zero activations", () => {
    const weights = randomWeights(type, 4, 256, randoms(1));
    for (const columns of [1, 4, 12]) {
      const activations = new Float32Array(columns * 256);
      const result = host.multiply({
        type: TYPE[type],
        weights: weights.bytes,
        rows: 4,
        activations,
        k: 256,
      });
      expect(result.values.every((value) => value === 0)).toBe(true);
    }
  });

  it.each([1, 3, 7])("take rows of %i blocks, and an odd number of panels", (blocks) => {
    const [rows, k] = [20, blocks * FORMATS[type].weights];
    for (const columns of [1, 4, 13]) {
      const random = randoms(blocks + columns);
      const weights = randomWeights(type, rows, k, random);
      const activations = exactActivations(columns, k, random);
      const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
      expect(result.fellBack).toBe(false);
      const expected = reference(weights.values, activations, rows, k);
      expect(worstError(result.values, expected)).toBeLessThan(F32_TOLERANCE);
    }
  });

  it("take activations whose scales are the largest and the smallest halves", () => {
    const [rows, k] = [8, 512];
    const weights = randomWeights(type, rows, k, randoms(5));
    for (const columns of [2, 4, 13]) {
      const activations = extremeActivations(columns, k, randoms(columns));
      const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
      const expected = reference(weights.values, activations, rows, k);
      expect(worstError(result.values, expected)).toBeLessThan(F32_TOLERANCE);
    }
  });

  it("preserve a NaN, only in its column", () => {
    const [rows, k] = [8, 512];
    const weights = randomWeights(type, rows, k, randoms(6));
    for (const columns of [1, 3, 13]) {
      const activations = exactActivations(columns, k, randoms(7));
      activations[k * (columns - 1) + 300] = Number.NaN;
      const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
      expect(areNanIn([columns - 1], result.values, rows)).toBe(true);
    }
  });

  it("are left to llama.cpp if the number of rows is not a multiple of four or the work buffer is too small", () => {
    const weights = randomWeights(type, 6, 256, randoms(2));
    const activations = exactActivations(1, 256, randoms(3));
    const problem = { type: TYPE[type], weights: weights.bytes, rows: 6, activations, k: 256 };
    expect(host.multiply(problem).fellBack).toBe(true);
    const four = weights.bytes.subarray(0, (weights.bytes.length / 6) * 4);
    expect(host.multiply({ ...problem, rows: 4, weights: four }).fellBack).toBe(false);
    expect(host.multiply({ ...problem, rows: 4, weights: four, workSize: 128 }).fellBack).toBe(true);
  });
});

describe.each<TypeName>(["F32", "F16", "BF16"])("%s weights", (type) => {
  const make = (count: number, random: () => number): { bytes: Uint8Array; values: number[] } => {
    if (type === "F32") {
      const floats = Float32Array.from({ length: count }, () => random() - 0.5);
      return { bytes: new Uint8Array(floats.buffer), values: [...floats] };
    }
    const bits = Uint16Array.from({ length: count }, () => {
      const sign = random() < 0.5 ? 0x8000 : 0;
      if (type === "BF16") return sign | (0x3c00 + Math.floor(random() * 0x400));
      return sign | (random() < 0.1 ? Math.floor(random() * 1024) : 0x2000 + Math.floor(random() * 0x2000));
    });
    const values = Array.from(bits, (half) =>
      type === "F16" ? halfToNumber(half) : new Float32Array(new Uint32Array([half << 16]).buffer)[0]!,
    );
    return { bytes: new Uint8Array(bits.buffer), values };
  };

  // 108 is not a multiple of a step of eight; the last panel of 76 rows has no partner.
  it.each([1, 2, 3, 4, 5, 7, 18])("times %i columns equal the plain definition", (columns) => {
    const random = randoms(columns);
    const [rows, k] = [76, 108];
    const weights = make(rows * k, random);
    const activations = Float32Array.from({ length: columns * k }, () => random() - 0.5);
    const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
    expect(result.fellBack).toBe(false);
    expect(worstError(result.values, reference(weights.values, activations, rows, k))).toBeLessThan(
      F32_TOLERANCE,
    );
  });

  // A chunk of 64 such rows has 24 KiB in F16, which are read ahead, and 96 KiB with the longer ones, which are not.
  it.each([192, 768])("may be strided, like keys of one head: %i per row", (k) => {
    const random = randoms(k);
    const [rows, rowLength] = [68, 1024];
    const weights = make(rows * rowLength, random);
    const values = Array.from({ length: rows }, (_, row) =>
      weights.values.slice(row * rowLength, row * rowLength + k),
    ).flat();
    const activations = Float32Array.from({ length: 3 * k }, () => random() - 0.5);
    const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows, activations, k });
    expect(result.fellBack).toBe(false);
    expect(worstError(result.values, reference(values, activations, rows, k))).toBeLessThan(F32_TOLERANCE);
  });

  it.each([1, 3])("serve several heads from one matrix, as in grouped attention of %i slots", (slots) => {
    const random = randoms(9);
    const [rows, k, matrices, heads] = [8, 64, 2, 6];
    const weights = make(rows * k * matrices * slots, random);
    for (const columns of [1, 2, 5]) {
      const activations = Float32Array.from({ length: columns * k * heads * slots }, () => random() - 0.5);
      const result = host.multiply({
        type: TYPE[type],
        weights: weights.bytes,
        rows,
        activations,
        k,
        matrices,
        heads,
        slots,
      });
      expect(result.fellBack).toBe(false);
      const expected = Array.from({ length: heads * slots }, (_, head) => {
        const matrix = Math.floor(head / (heads / matrices));
        return reference(
          weights.values.slice(matrix * rows * k, (matrix + 1) * rows * k),
          activations.subarray(head * columns * k, (head + 1) * columns * k),
          rows,
          k,
        );
      }).flat();
      expect(worstError(result.values, expected)).toBeLessThan(F32_TOLERANCE);
    }
  });

  it("preserve NaN", () => {
    const weights = make(4 * 8, randoms(4));
    for (const columns of [1, 6]) {
      const activations = new Float32Array(8 * columns).fill(1);
      activations[3] = Number.NaN;
      const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows: 4, activations, k: 8 });
      expect([...result.values.subarray(0, 4)]).toEqual(Array.from({ length: 4 }, () => Number.NaN));
      expect(result.values.subarray(4).every(Number.isFinite)).toBe(true);
    }
  });

  it("take activations as large and as small as halves", () => {
    const random = randoms(6);
    const weights = make(4 * 16, random);
    for (const magnitude of [65504, 2 ** -24]) {
      const activations = Float32Array.from({ length: 16 }, () => (random() < 0.5 ? -magnitude : magnitude));
      const result = host.multiply({ type: TYPE[type], weights: weights.bytes, rows: 4, activations, k: 16 });
      expect(worstError(result.values, reference(weights.values, activations, 4, 16))).toBeLessThan(
        F32_TOLERANCE,
      );
    }
  });
});
