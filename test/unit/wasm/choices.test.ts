import { describe, expect, it } from "vitest";
import type { HostTensor } from "../../support/host-tensors.ts";
import { OperatorHost, TENSOR } from "../../support/operator-host.ts";
import { numbersFrom } from "./numbers.ts";

const OP = { addId: 3, sumRows: 15, clamp: 50, argsort: 69 } as const;
const NOTHING = new Int32Array(0);

const host = await OperatorHost.start();

const f32 = (data: Float32Array, ...ne: number[]): HostTensor => ({ type: TENSOR.f32, ne, data });

function sort(x: Float32Array, width: number, descending: boolean, threads = 1): number[] | undefined {
  const ne = [width, x.length / width];
  const result = { type: TENSOR.i32, ne, data: new Int32Array(x.length) };
  const parameters = new Int32Array([descending ? 1 : 0]);
  const prepared = host.prepare({
    op: OP.argsort,
    parameters,
    sources: [f32(x, ...ne)],
    ne,
    result,
    threads,
  });
  return prepared.run() ? Array.from(new Int32Array(prepared.readBytes().buffer)) : undefined;
}

describe("argsort", () => {
  it.each([1, 2, 3, 4, 7, 8, 100, 1024])("sorts rows of %i in both orders", (width) => {
    const x = numbersFrom(width, 3 * width, 5);
    for (const descending of [true, false]) {
      const expected = [0, 1, 2].flatMap((row) => {
        const values = x.subarray(row * width, (row + 1) * width);
        const sign = descending ? -1 : 1;
        return Array.from(values.keys()).toSorted((a, b) => sign * (values[a]! - values[b]!));
      });
      expect(sort(x, width, descending)).toEqual(expected);
      expect(sort(x, width, descending, 2)).toEqual(expected);
    }
  });

  it("is stable", () => {
    expect(sort(new Float32Array([1, 2, 1, 2, 1]), 5, true)).toEqual([1, 3, 0, 2, 4]);
  });

  it("leaves very long rows to llama.cpp", () => {
    expect(sort(new Float32Array(1025), 1025, true)).toBe(undefined);
  });
});

it("sum_rows adds the numbers of each row", () => {
  const x = numbersFrom(1, 21, 5);
  const expected = [0, 1, 2].map((row) =>
    Math.fround(x.subarray(7 * row, 7 * row + 7).reduce((a, b) => a + b, 0)),
  );
  const found = host.run({
    op: OP.sumRows,
    parameters: NOTHING,
    sources: [f32(x, 7, 3)],
    ne: [1, 3],
    threads: 2,
  });
  for (const [row, sum] of expected.entries()) expect(found![row]).toBeCloseTo(sum, 5);
});

it("clamp limits numbers, and turns NaN into the maximum, like llama.cpp", () => {
  const parameters = new Int32Array(new Float32Array([-1, 2]).buffer);
  const x = new Float32Array([-5, -1, 0.5, 2, 9, Number.NaN]);
  const found = host.run({ op: OP.clamp, parameters, sources: [f32(x, 6)], ne: [6] });
  expect(found).toEqual(new Float32Array([-1, -1, 0.5, 2, 2, 2]));
});

describe("biases of the chosen experts", () => {
  const [WIDTH, USED, TOKENS] = [5, 2, 3];
  const x = numbersFrom(2, WIDTH * USED * TOKENS, 5);
  const biases = numbersFrom(3, WIDTH * 4, 5);

  function add(chosen: readonly number[]): Float32Array | undefined {
    const ids = { type: TENSOR.i32, ne: [USED, TOKENS], data: new Int32Array(chosen) };
    const sources = [f32(x, WIDTH, USED, TOKENS), f32(biases, WIDTH, 4), ids];
    return host.run({ op: OP.addId, parameters: NOTHING, sources, ne: [WIDTH, USED, TOKENS], threads: 2 });
  }

  it("are added", () => {
    const chosen = [3, 0, 1, 1, 2, 3];
    const expected = Float32Array.from(
      x,
      (value, at) => value + biases[chosen[Math.floor(at / WIDTH)]! * WIDTH + (at % WIDTH)]!,
    );
    expect(add(chosen)).toEqual(expected);
  });

  it("trap for an unknown expert", () => {
    expect(() => add([0, 0, 0, 0, 0, 4])).toThrow(WebAssembly.RuntimeError);
    expect(() => add([-1, 0, 0, 0, 0, 0])).toThrow(WebAssembly.RuntimeError);
  });
});
