import { describe, expect, it } from "vitest";
import { halfToNumber } from "../../support/dequantize.ts";
import type { HostTensor } from "../../support/host-tensors.ts";
import { OperatorHost, TENSOR } from "../../support/operator-host.ts";
import { numbersFrom } from "./numbers.ts";

const OP = { getRows: 40, setRows: 42 } as const;
const BF16 = 30;
const IQ1_S = 19;

const host = await OperatorHost.start();
const NOTHING = new Int32Array(0);

const i32 = (numbers: readonly number[], ...ne: number[]): HostTensor => ({
  type: TENSOR.i32,
  ne: ne.length > 0 ? ne : [numbers.length],
  data: new Int32Array(numbers),
});
const i64 = (numbers: readonly number[], ...ne: number[]): HostTensor => ({
  type: TENSOR.i64,
  ne: ne.length > 0 ? ne : [numbers.length],
  data: new BigInt64Array(numbers.map(BigInt)),
});
const f32 = (data: Float32Array, ...ne: number[]): HostTensor => ({ type: TENSOR.f32, ne, data });

/** Floats and their nearest halves, including special cases: ties, overflow, subnormal ones. */
const TO_HALVES = [
  [0, 0],
  [-0, 0x8000],
  [1, 0x3c00],
  [-2, 0xc000],
  [1 + 2 ** -11, 0x3c00],
  [1 + 3 * 2 ** -11, 0x3c02],
  [1 + 2 ** -11 + 2 ** -20, 0x3c01],
  [65_504, 0x7bff],
  [65_519.996, 0x7bff],
  [65_520, 0x7c00],
  [-1e30, 0xfc00],
  [Number.POSITIVE_INFINITY, 0x7c00],
  [2 ** -14, 0x0400],
  [2 ** -14 - 2 ** -24, 0x03ff],
  [2 ** -24, 0x0001],
  [2 ** -25, 0x0000],
  [2 ** -25 * 1.001, 0x0001],
  [-3 * 2 ** -25, 0x8002],
  [1e-40, 0x0000],
  [0.1, 0x2e66],
] as const;

const isFiniteHalf = (half: number): boolean => (half & 0x7c00) !== 0x7c00;

const find = (w: HostTensor, rows: HostTensor, threads = 1): Float32Array | undefined =>
  host.run({
    op: OP.getRows,
    parameters: NOTHING,
    sources: [w, rows],
    ne: [w.ne[0]!, ...rows.ne],
    threads,
  });

describe("get_rows", () => {
  it("reads floats", () => {
    const w = numbersFrom(1, 5 * 7, 3);
    const expected = [6, 0, 0, 3].flatMap((row) => Array.from(w.subarray(row * 5, row * 5 + 5)));
    for (const threads of [1, 3])
      expect(Array.from(find(f32(w, 5, 7), i32([6, 0, 0, 3]), threads)!)).toEqual(expected);
  });

  it("reads each matrix of a batch", () => {
    const w = numbersFrom(2, 2 * 3 * 2, 3);
    const found = find(f32(w, 2, 3, 2), i32([2, 0, 1, 1], 2, 2));
    const expected = [2, 0, 3 + 1, 3 + 1].flatMap((row) => Array.from(w.subarray(row * 2, row * 2 + 2)));
    expect(Array.from(found!)).toEqual(expected);
  });

  it("reads all halves", () => {
    const halves = Uint16Array.from({ length: 65_536 }, (_, at) => at);
    const found = find({ type: TENSOR.f16, ne: [65_536, 1], data: halves }, i32([0]));
    const wrong = halves.filter((half, at) => isFiniteHalf(half) && found![at] !== halfToNumber(half));
    expect(Array.from(wrong)).toEqual([]);
    expect(found![0x7c00]).toBe(Number.POSITIVE_INFINITY);
    expect(found![0xfc00]).toBe(Number.NEGATIVE_INFINITY);
    expect(found![0x7e00]).toBeNaN();
    const three = find(
      { type: TENSOR.f16, ne: [3, 2], data: new Uint16Array([1, 2, 3, 0x3c00, 0x7c00, 0xc000]) },
      i32([1]),
    );
    expect(Array.from(three!)).toEqual([1, Number.POSITIVE_INFINITY, -2]);
  });

  it("reads BF16", () => {
    const w = { type: BF16, ne: [3, 1], data: new Uint16Array([0x3f80, 0xc000, 0x0001]) };
    expect(Array.from(find(w, i32([0]))!)).toEqual([1, -2, 2 ** -133]);
  });

  it("leaves rare formats to llama.cpp", () => {
    expect(find({ type: IQ1_S, ne: [256, 1], data: new Uint8Array(50) }, i32([0]))).toBe(undefined);
  });

  it("traps where there is no such row", () => {
    expect(() => find(f32(new Float32Array(6), 2, 3), i32([3]))).toThrow(WebAssembly.RuntimeError);
    expect(() => find(f32(new Float32Array(6), 2, 3), i32([-1]))).toThrow(WebAssembly.RuntimeError);
  });
});

function set(x: HostTensor, rows: HostTensor, result: HostTensor, threads = 1): Uint8Array | undefined {
  const prepared = host.prepare({
    op: OP.setRows,
    parameters: NOTHING,
    sources: [x, rows],
    ne: result.ne,
    result,
    threads,
  });
  return prepared.run() ? prepared.readBytes() : undefined;
}
const halvesIn = (bytes: Uint8Array | undefined): number[] => Array.from(new Uint16Array(bytes!.buffer));

describe("set_rows", () => {
  it.each([1, 3])("writes floats and does not change other rows, on %i threads", (threads) => {
    const cache = f32(new Float32Array(15).fill(9), 3, 5);
    const found = set(f32(new Float32Array([1, 2, 3, 4, 5, 6]), 3, 2), i64([4, 0]), cache, threads);
    const expected = [4, 5, 6, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3];
    expect(Array.from(new Float32Array(found!.buffer))).toEqual(expected);
  });

  it("writes the nearest halves, in rows", () => {
    const count = TO_HALVES.length;
    const numbers = f32(
      Float32Array.from(TO_HALVES, ([number]) => number),
      count,
    );
    for (const rows of [i64([1]), i32([1])]) {
      const found = halvesIn(
        set(numbers, rows, { type: TENSOR.f16, ne: [count, 2], data: new Uint16Array(2 * count) }),
      );
      expect(found.slice(count)).toEqual(TO_HALVES.map(([, half]) => half));
      expect(found.slice(0, count)).toEqual(TO_HALVES.map(() => 0));
    }
  });

  it("writes a NaN as NaN", () => {
    const found = set(f32(new Float32Array([Number.NaN]), 1), i64([0]), {
      type: TENSOR.f16,
      ne: [1],
      data: new Uint16Array(1),
    });
    expect(halvesIn(found)).toEqual([0x7e00]);
  });

  it.each([1, 3])("writes single numbers to a transposed cache, on %i threads", (threads) => {
    const count = TO_HALVES.length;
    const numbers = f32(
      Float32Array.from(TO_HALVES, ([number]) => number),
      1,
      count,
    );
    const places = TO_HALVES.map((_, at) => (at * 7) % count);
    const found = halvesIn(
      set(numbers, i64(places), { type: TENSOR.f16, ne: [1, count], data: new Uint16Array(count) }, threads),
    );
    for (const [at, place] of places.entries()) expect(found[place]).toBe(TO_HALVES[at]![1]);
  });

  it("uses the row numbers of one matrix for a batch", () => {
    const cache = f32(new Float32Array(8), 1, 4, 2);
    const found = set(f32(new Float32Array([1, 2, 3, 4]), 1, 2, 2), i64([3, 1]), cache);
    expect(Array.from(new Float32Array(found!.buffer))).toEqual([0, 2, 0, 1, 0, 4, 0, 3]);
  });

  it("quantizes rows of blocks with llama.cpp", () => {
    const x = numbersFrom(3, 64, 2);
    const found = set(f32(x, 32, 2), i64([1, 0]), {
      type: TENSOR.q8_0,
      ne: [32, 2],
      nb: [34, 34, 68, 68],
      data: new Uint8Array(68),
    });
    // The fake copies one byte per number.
    const bytes = new Uint8Array(x.buffer);
    expect(found!.slice(34, 66)).toEqual(bytes.slice(0, 32));
    expect(found!.slice(0, 32)).toEqual(bytes.slice(128, 160));
  });

  it("leaves other types to llama.cpp", () => {
    expect(
      set(f32(new Float32Array(2), 2), i64([0]), { type: BF16, ne: [2], data: new Uint16Array(2) }),
    ).toBe(undefined);
  });

  it("traps where there is no such row", () => {
    expect(() => set(f32(new Float32Array(2), 2), i64([1]), f32(new Float32Array(2), 2))).toThrow(
      WebAssembly.RuntimeError,
    );
  });
});
