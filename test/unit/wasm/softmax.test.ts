import { describe, expect, it } from "vitest";
import type { HostTensor } from "../../support/host-tensors.ts";
import { OperatorHost, TENSOR } from "../../support/operator-host.ts";
import { halfToNumber } from "../../support/dequantize.ts";
import { differing, numbersFrom } from "./numbers.ts";

const SOFT_MAX = 46;
const host = await OperatorHost.start();

interface Problem {
  readonly count: number;
  readonly tokens?: number;
  readonly heads?: number;
  readonly scale?: number;
  readonly bias?: number;
  /** Mask of one head, for all tokens; F16 as bits. */
  readonly mask?: Float32Array | Uint16Array;
  readonly sinks?: Float32Array;
  readonly threads?: number;
}

function f32(data: Float32Array, ne: readonly number[]): HostTensor {
  return { type: TENSOR.f32, ne, data };
}

function run(scores: Float32Array, problem: Problem): Float32Array | undefined {
  const { count, tokens = 1, heads = 1, scale = 1, bias = 0, mask, sinks, threads = 1 } = problem;
  const parameters = new Int32Array(new Float32Array([scale, bias]).buffer);
  const maskTensor = mask && {
    type: mask instanceof Uint16Array ? TENSOR.f16 : TENSOR.f32,
    ne: [count, tokens],
    data: mask,
  };
  const ne = [count, tokens, heads];
  const sources = [f32(scores, ne), maskTensor, sinks && f32(sinks, [heads])];
  return host.run({ op: SOFT_MAX, parameters, sources, ne, threads });
}

/** The definition, in doubles. */
function reference(scores: Float32Array, problem: Problem): number[] {
  const { count, tokens = 1, heads = 1, scale = 1, mask, sinks } = problem;
  return Array.from({ length: tokens * heads }, (_, row) => {
    const values = Array.from(scores.subarray(row * count, (row + 1) * count), (score, at) => {
      const masked = mask?.[(row % tokens) * count + at] ?? 0;
      return score * scale + (mask instanceof Uint16Array ? halfToNumber(masked) : masked);
    });
    const sink = sinks?.[Math.floor(row / tokens)] ?? Number.NEGATIVE_INFINITY;
    const most = Math.max(sink, ...values);
    const powers = values.map((value) => Math.exp(value - most));
    const sum = powers.reduce((total, power) => total + power, Math.exp(sink - most));
    return powers.map((power) => power / sum);
  }).flat();
}

const NEVER_F16 = 0xfc00;

describe("soft_max", () => {
  it.each([1, 2, 3, 4, 5, 7, 64, 255, 1023, 1024, 1025, 5000])("is accurate for %i scores", (count) => {
    const scores = numbersFrom(count, count * 6, 12);
    const problem = { count, tokens: 2, heads: 3, scale: 0.125 };
    expect(differing(run(scores, problem), reference(scores, problem), 3e-6)).toEqual([]);
  });

  it.each([0.125, 1, -2, 0])(
    "is accurate with the scale %f and a mask of halves that hides the end",
    (scale) => {
      const [count, tokens] = [37, 5];
      const scores = numbersFrom(3, count * tokens * 2, 8);
      const mask = Uint16Array.from({ length: count * tokens }, (_, at) =>
        at % count <= 30 + Math.floor(at / count) ? 0 : NEVER_F16,
      );
      const problem = { count, tokens, heads: 2, scale, mask };
      const found = run(scores, problem);
      expect(differing(found, reference(scores, problem), 3e-6)).toEqual([]);
      expect(found![31]).toBe(0);
    },
  );

  it("is accurate with a mask of arbitrary floats", () => {
    const [count, tokens] = [19, 3];
    const scores = numbersFrom(4, count * tokens, 4);
    const mask = numbersFrom(5, count * tokens, 10);
    mask[2] = Number.NEGATIVE_INFINITY;
    const problem = { count, tokens, mask };
    expect(differing(run(scores, problem), reference(scores, problem), 3e-6)).toEqual([]);
  });

  it("is accurate with sinks", () => {
    const scores = numbersFrom(6, 21 * 2 * 3, 6);
    const problem = { count: 21, tokens: 2, heads: 3, sinks: new Float32Array([9, -4, 0]) };
    expect(differing(run(scores, problem), reference(scores, problem), 3e-6)).toEqual([]);
  });

  it.each([2, 3, 16])("has the same result on %i threads", (threads) => {
    const scores = numbersFrom(7, 50 * 7, 9);
    const problem = { count: 50, tokens: 1, heads: 7, scale: 0.3 };
    expect(run(scores, { ...problem, threads })).toEqual(run(scores, problem));
  });

  it("handles extreme scores", () => {
    const scores = new Float32Array([3e38, -3e38, 0, 1e-40, 3e38, -1e30, 80, -80]);
    expect(differing(run(scores, { count: 8 }), reference(scores, { count: 8 }), 3e-6)).toEqual([]);
    const far = new Float32Array([0, -50, -87, -88, -100, -1000, -1e30, Number.NEGATIVE_INFINITY]);
    expect(differing(run(far, { count: 8 }), reference(far, { count: 8 }), 3e-6)).toEqual([]);
  });

  it("is NaN for scores with a NaN, like llama.cpp", () => {
    const found = run(new Float32Array([1, 2, Number.NaN, 3, 4]), { count: 5 });
    expect(found!.every((value) => Number.isNaN(value))).toBe(true);
  });

  it("leaves ALiBi to llama.cpp", () => {
    expect(run(new Float32Array(8), { count: 8, bias: 8 })).toBe(undefined);
  });
});
