import { describe, expect, it } from "vitest";
import { FORMATS, halfToNumber, type TypeName } from "../../support/dequantize.ts";
import type { HostTensor } from "../../support/host-tensors.ts";
import { OperatorHost, TENSOR } from "../../support/operator-host.ts";
import { differing, numbersFrom } from "./numbers.ts";

const FLASH_ATTENTION = 74;
const NEVER_F16 = 0xfc00;
const WORK_BYTES = 4 * 1024 * 1024;
const host = await OperatorHost.start();

interface Problem {
  /** Width of a key, and of a value. */
  readonly key?: number;
  readonly value?: number;
  /** Number of tokens in the cache, and in the step. */
  readonly cache: number;
  readonly tokens?: number;
  readonly heads?: number;
  readonly cacheHeads?: number;
  readonly slots?: number;
  readonly type?: "F32" | "F16" | Quantized;
  readonly scale?: number;
  readonly bias?: number;
  /** True if the token `token` of the step sees the token `seen` of the cache; absent: no mask. */
  readonly sees?: (token: number, seen: number) => boolean;
  readonly sinks?: Float32Array;
  readonly threads?: number;
  readonly workBytes?: number;
  /** Changes the queries of a case. */
  readonly spoil?: (queries: Float32Array) => void;
}
type Quantized = "Q4_0" | "Q4_1" | "Q5_0" | "Q5_1" | "Q8_0";
const TYPES = { F32: 0, F16: 1, Q4_0: 2, Q4_1: 3, Q5_0: 6, Q5_1: 7, Q8_0: 8 } as const;

interface Cache {
  readonly tensor: HostTensor;
  /** Numbers that the bytes represent. */
  readonly numbers: Float32Array;
}

/** Random keys or values: [slot][head][token][number]. */
function randomCache(seed: number, type: keyof typeof TYPES, ne: readonly number[]): Cache {
  const count = ne.reduce((product, each) => product * each, 1);
  const numbers = numbersFrom(seed, count, 2);
  if (type === "F32") return { tensor: { type: TYPES[type], ne, data: numbers }, numbers };
  if (type === "F16") {
    // Halves between 2^-4 and 4, and some subnormal ones.
    const data = Uint16Array.from(numbers, (number, at) =>
      at % 97 === 0 ? at % 1024 : ((number < 0 ? 0x8000 : 0) | (0x2c00 + ((at * 7919) % 0x1800))) >>> 0,
    );
    return { tensor: { type: TYPES[type], ne, data }, numbers: Float32Array.from(data, halfToNumber) };
  }
  const format = FORMATS[type satisfies TypeName];
  const blocks = count / format.weights;
  const data = Uint8Array.from({ length: blocks * format.bytes }, (_, at) => (at * 2_654_435_761) >>> 13);
  const view = new DataView(data.buffer);
  const dequantized: number[] = [];
  for (let block = 0; block < blocks; block++) {
    const start = block * format.bytes;
    for (const [which, half] of format.halves.entries())
      view.setUint16(start + half, (which === 1 ? 0xa800 : 0x2800) + (block % 512), true);
    dequantized.push(...format.dequantize(new DataView(data.buffer, start, format.bytes)));
  }
  const row = (ne[0]! / format.weights) * format.bytes;
  const nb = [format.bytes, row, row * ne[1]!, row * ne[1]! * ne[2]!];
  return { tensor: { type: TYPES[type], ne, nb, data }, numbers: Float32Array.from(dequantized) };
}

function solve(problem: Problem): { found: Float32Array | undefined; expected: number[] } {
  const { key = 64, value = key, cache, tokens = 1, heads = 1, cacheHeads = heads, slots = 1 } = problem;
  const { type = "F16", scale = 0.125, bias = 0, sees, sinks, threads = 1, spoil } = problem;
  const queries = numbersFrom(cache, key * tokens * heads * slots, 3);
  spoil?.(queries);
  const keys = randomCache(1, type, [key, cache, cacheHeads, slots]);
  const values = randomCache(2, type, [value, cache, cacheHeads, slots]);
  const mask = Uint16Array.from({ length: cache * tokens }, (_, at) =>
    sees?.(Math.floor(at / cache), at % cache) === false ? NEVER_F16 : 0,
  );
  const sources: (HostTensor | undefined)[] = [
    // In llama.cpp the heads of a token are adjacent.
    {
      type: TENSOR.f32,
      ne: [key, tokens, heads, slots],
      nb: [4, 4 * key * heads, 4 * key, 4 * key * heads * tokens],
      data: queries,
    },
    keys.tensor,
    values.tensor,
    sees && { type: TENSOR.f16, ne: [cache, tokens], data: mask },
    sinks && { type: TENSOR.f32, ne: [heads], data: sinks },
  ];
  const found = host.run({
    op: FLASH_ATTENTION,
    parameters: new Int32Array(new Float32Array([scale, bias, 0]).buffer),
    sources,
    ne: [value, heads, tokens, slots],
    threads,
    workBytes: problem.workBytes ?? WORK_BYTES,
  });
  const expected: number[] = [];
  for (let slot = 0; slot < slots; slot++) {
    for (let token = 0; token < tokens; token++) {
      for (let head = 0; head < heads; head++) {
        const from = slot * cacheHeads + Math.floor((head * cacheHeads) / heads);
        const query = queries.subarray(((slot * tokens + token) * heads + head) * key).subarray(0, key);
        const scores = Array.from({ length: cache }, (_, seen) => {
          if (sees?.(token, seen) === false) return Number.NEGATIVE_INFINITY;
          const row = keys.numbers.subarray((from * cache + seen) * key);
          return scale * query.reduce((sum, number, at) => sum + number * row[at]!, 0);
        });
        const sink = sinks?.[head] ?? Number.NEGATIVE_INFINITY;
        const most = Math.max(sink, ...scores);
        const powers = scores.map((score) =>
          score === Number.NEGATIVE_INFINITY ? 0 : Math.exp(score - most),
        );
        const total = powers.reduce(
          (sum, power) => sum + power,
          sink === Number.NEGATIVE_INFINITY ? 0 : Math.exp(sink - most),
        );
        for (let at = 0; at < value; at++) {
          const sum = powers.reduce(
            (so, power, seen) => so + power * values.numbers[(from * cache + seen) * value + at]!,
            0,
          );
          expected.push(total === 0 ? 0 : sum / total);
        }
      }
    }
  }
  return { found, expected };
}

/** Results with a larger error than the rounding of the largest one. */
function wrong(problem: Problem): unknown[] {
  const { found, expected } = solve(problem);
  const largest = Math.max(...expected.map(Math.abs));
  const shifted = found?.map((value) => value + 8 * largest);
  return differing(
    shifted,
    expected.map((value) => value + 8 * largest),
    2e-6,
  );
}

describe("flash_attn_ext", () => {
  const types = ["F32", "F16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"] as const;
  it.each(types)("is accurate with a cache of %s, for one token and for many", (type) => {
    const few = { type, cache: 132, heads: 6, cacheHeads: 2 };
    expect(wrong(few)).toEqual([]);
    expect(wrong({ ...few, tokens: 9, sees: (token, seen) => seen <= 120 + token })).toEqual([]);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 21, 64, 65, 130])("is accurate for %i queries of one head", (tokens) => {
    expect(wrong({ cache: 72, tokens, sees: (token, seen) => seen <= token })).toEqual([]);
  });

  it.each([4, 8, 60, 64, 68, 256])("is accurate over a cache of %i tokens", (cache) => {
    expect(wrong({ cache, heads: 3, cacheHeads: 1 })).toEqual([]);
    expect(wrong({ cache, heads: 8, cacheHeads: 1 })).toEqual([]);
  });

  it.each([
    { key: 64, value: 64 },
    { key: 80, value: 96 },
    { key: 128, value: 128 },
    { key: 192, value: 128 },
  ])("is accurate with keys of width $key and values of width $value", ({ key, value }) => {
    expect(wrong({ key, value, cache: 68, heads: 4, cacheHeads: 2 })).toEqual([]);
    expect(wrong({ key, value, cache: 68, heads: 4, cacheHeads: 2, tokens: 5 })).toEqual([]);
  });

  it("is accurate with a mask that hides complete chunks, at the start, in the middle and at the end", () => {
    const problem: Problem = {
      cache: 448,
      tokens: 4,
      heads: 2,
      sees: (token, seen) => (seen >= 70 && seen < 90 + token) || seen === 300,
    };
    expect(wrong(problem)).toEqual([]);
  });

  it("gives zeros to a query that sees no token", () => {
    const { found, expected } = solve({
      cache: 128,
      tokens: 2,
      sees: (token, seen) => token === 1 && seen < 3,
    });
    expect(found!.subarray(0, 64).every((value) => value === 0)).toBe(true);
    expect(differing(found, expected, 1e-4)).toEqual([]);
  });

  it("is accurate for several slots with separate caches", () => {
    expect(wrong({ cache: 64, slots: 3, heads: 4, cacheHeads: 2, tokens: 2 })).toEqual([]);
  });

  it("is accurate with sinks", () => {
    const sinks = new Float32Array([30, 0, -20]);
    expect(wrong({ cache: 68, heads: 3, cacheHeads: 1, sinks })).toEqual([]);
  });

  it("handles scores that differ by more than the range of an exponential", () => {
    expect(wrong({ cache: 200, heads: 2, scale: 40 })).toEqual([]);
    expect(wrong({ cache: 200, tokens: 7, scale: 40 })).toEqual([]);
    expect(wrong({ cache: 200, tokens: 7, scale: 0 })).toEqual([]);
  });

  it("keeps a NaN", () => {
    const { found } = solve({ cache: 64, tokens: 2, spoil: (queries) => (queries[3] = Number.NaN) });
    expect(found!.subarray(0, 64).every((value) => Number.isNaN(value))).toBe(true);
    expect(found!.subarray(64).some((value) => Number.isNaN(value))).toBe(false);
  });

  it.each([2, 3, 16])("has the same result on %i threads", (threads) => {
    const problem = { cache: 128, tokens: 3, heads: 10, cacheHeads: 5, slots: 2 };
    expect(solve({ ...problem, threads }).found).toEqual(solve(problem).found);
  });

  it("leaves unsupported cases, and those with a too small work buffer, to llama.cpp", () => {
    expect(solve({ cache: 64, bias: 8 }).found).toBe(undefined);
    expect(solve({ cache: 66 }).found).toBe(undefined);
    expect(solve({ cache: 64, workBytes: 1024 }).found).toBe(undefined);
  });
});
