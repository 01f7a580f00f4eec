import { describe, expect, it } from "vitest";
import { ADDRESSES } from "../../../wasm/llama-cpp-build.ts";
import { halfToNumber } from "../../support/dequantize.ts";
import type { HostTensor } from "../../support/host-tensors.ts";
import { OperatorHost, TENSOR } from "../../support/operator-host.ts";
import { differing, numbersFrom } from "./numbers.ts";

const OP = { add: 2, subtract: 6, multiply: 7, divide: 8, scale: 32, unary: 91, glu: 100 } as const;
const UNARY = { tanh: 4, relu: 6, sigmoid: 7, gelu: 8, silu: 10 } as const;
const GLU = { reglu: 0, geglu: 1, swiglu: 2, bounded: 3, geglu_erf: 4 } as const;

/** Address of llama.cpp's table; here it maps each half to another one, and NaN to itself. */
const TABLE = Uint16Array.from({ length: 65_536 }, (_, half) =>
  (half & 0x7fff) > 0x7c00 ? half : (half * 7) & 0x3bff,
);

const host = await OperatorHost.start();
host.put(ADDRESSES.geluTable, TABLE);
const NOTHING = new Int32Array(2);

function f32(data: Float32Array, ...ne: readonly number[]): HostTensor {
  return { type: TENSOR.f32, ne, data };
}

describe("operators on two tensors", () => {
  const plain = {
    add: (a: number, b: number) => a + b,
    subtract: (a: number, b: number) => a - b,
    multiply: (a: number, b: number) => a * b,
    divide: (a: number, b: number) => a / b,
  };
  const names = ["add", "subtract", "multiply", "divide"] as const;

  function run(
    name: keyof typeof plain,
    a: HostTensor,
    b: HostTensor,
    threads = 1,
  ): Float32Array | undefined {
    return host.run({ op: OP[name], parameters: NOTHING, sources: [a, b], ne: a.ne, threads });
  }

  it.each(names)("%s is exact, also for a remainder of one number", (name) => {
    const [a, b] = [numbersFrom(1, 3 * 9, 5), numbersFrom(2, 3 * 9, 5)];
    const expected = Float32Array.from(a, (value, at) => plain[name](value, b[at]!));
    expect(run(name, f32(a, 9, 3), f32(b, 9, 3))).toEqual(expected);
  });

  it.each([
    ["a row for all rows, like weights of a norm and biases", [8, 1, 1, 1]],
    ["a number for each row", [1, 6, 1, 1]],
    ["one number for all", [1, 1, 1, 1]],
    ["a part of a row", [4, 6, 2, 1]],
    ["a matrix for each of a batch", [8, 6, 1, 3]],
    ["half of the rows", [8, 3, 2, 3]],
  ])("repeat %s", (_, ne) => {
    const shape = [8, 6, 2, 3];
    const [a, b] = [
      numbersFrom(3, 288, 5),
      numbersFrom(
        4,
        ne.reduce((all, each) => all * each),
        5,
      ),
    ];
    const expected = Float32Array.from(a, (value, at) => {
      const index = [at % 8, Math.floor(at / 8) % 6, Math.floor(at / 48) % 2, Math.floor(at / 96)];
      const other = index.reduceRight(
        (sum, each, dimension) => sum * ne[dimension]! + (each % ne[dimension]!),
        0,
      );
      return value + b[other]!;
    });
    for (const threads of [1, 2, 5])
      expect(run("add", f32(a, ...shape), f32(b, ...ne), threads)).toEqual(expected);
  });

  it("read rows that are parts of longer ones", () => {
    const [a, b] = [numbersFrom(5, 30, 5), numbersFrom(6, 6, 5)];
    const part = { ...f32(a, 6, 3), nb: [4, 40, 120, 120] };
    const expected = Float32Array.from(
      { length: 18 },
      (_, at) => a[Math.floor(at / 6) * 10 + (at % 6)]! * b[at % 6]!,
    );
    expect(run("multiply", part, f32(b, 6))).toEqual(expected);
  });

  it("leave other types and non-contiguous rows to llama.cpp", () => {
    const a = f32(new Float32Array(8), 4, 2);
    expect(run("add", a, { type: TENSOR.f16, ne: [4, 2], data: new Uint16Array(8) })).toBe(undefined);
    expect(run("add", a, { ...f32(new Float32Array(8), 4, 2), nb: [8, 4, 32, 32] })).toBe(undefined);
  });
});

function activate(activation: number, x: Float32Array): Float32Array | undefined {
  const parameters = new Int32Array([activation]);
  return host.run({ op: OP.unary, parameters, sources: [f32(x, x.length)], ne: [x.length] });
}

describe("operators on one tensor", () => {
  it.each([
    [2, 0],
    [0.3, 0.7],
  ])("scaling by %f and adding %f is exact", (factor, term) => {
    const x = numbersFrom(7, 33, 5);
    const [f, t] = [Math.fround(factor), Math.fround(term)];
    const expected = Float32Array.from(x, (value) => Math.fround(value * f) + t);
    const parameters = new Int32Array(new Float32Array([f, t]).buffer);
    expect(host.run({ op: OP.scale, parameters, sources: [f32(x, 11, 3)], ne: [11, 3], threads: 2 })).toEqual(
      expected,
    );
  });

  it("RELU replaces negative numbers by 0", () => {
    expect(activate(UNARY.relu, new Float32Array([-1, 0, 2, -0.5, 3]))).toEqual(
      new Float32Array([0, 0, 2, 0, 3]),
    );
  });

  it("SiLU is accurate", () => {
    const x = numbersFrom(8, 37, 20);
    expect(differing(activate(UNARY.silu, x), Array.from(x, silu), 1e-6)).toEqual([]);
  });

  it("SiLU handles extreme numbers and NaN", () => {
    const x = new Float32Array([0, 1e-40, -1e-40, 88, 87, -80, 1000, 3e38, -87.9]);
    expect(differing(activate(UNARY.silu, x), Array.from(x, silu), 2e-6)).toEqual([]);
    const low = activate(UNARY.silu, new Float32Array([-89, -100, -1000, -3e38]));
    expect(Array.from(low!, Math.abs)).toEqual([0, 0, 0, 0]);
    expect(Array.from(activate(UNARY.silu, new Float32Array([1, Number.NaN]))!, Number.isNaN)).toEqual([
      false,
      true,
    ]);
  });

  it("sigmoid is accurate", () => {
    const x = numbersFrom(12, 37, 20);
    const expected = Array.from(x, (value) => 1 / (1 + Math.exp(-value)));
    expect(differing(activate(UNARY.sigmoid, x), expected, 1e-6)).toEqual([]);
  });

  it("GELU uses llama.cpp's table of halves", () => {
    const x = numbersFrom(15, 999, 9.99);
    expect(activate(UNARY.gelu, x)).toEqual(x.map(gelu));
  });

  it("GELU handles large and small numbers and NaN", () => {
    const x = new Float32Array([10, 1e4, 3e38, -10, -1e4, -3e38, Number.NaN]);
    expect(activate(UNARY.gelu, x)).toEqual(new Float32Array([10, 1e4, 3e38, 0, 0, 0, Number.NaN]));
  });

  it("leave other activations to llama.cpp", () => {
    expect(activate(UNARY.tanh, new Float32Array(4))).toBe(undefined);
  });
});

describe("gated activations", () => {
  const functions = { reglu: (x: number) => Math.max(x, 0), geglu: gelu, swiglu: silu };
  const names = ["reglu", "geglu", "swiglu"] as const;
  const ROWS = 3;
  const WIDTH = 10;

  function run(glu: number, sources: HostTensor[], swapped = 0): Float32Array | undefined {
    const parameters = new Int32Array([glu, swapped]);
    return host.run({ op: OP.glu, parameters, sources, ne: [WIDTH, ROWS], threads: 2 });
  }

  it.each(names)("%s with the gate in a separate tensor", (name) => {
    const [x, gate] = [numbersFrom(9, 30, 6), numbersFrom(10, 30, 3)];
    const expected = Array.from(x, (value, at) => functions[name](value) * gate[at]!);
    const found = run(GLU[name], [f32(x, WIDTH, ROWS), f32(gate, WIDTH, ROWS)]);
    expect(differing(found, expected, 1e-3)).toEqual([]);
  });

  it.each([0, 1])("with both in one row, swapped: %i", (swapped) => {
    const both = numbersFrom(11, 2 * WIDTH * ROWS, 6);
    const expected = Array.from({ length: WIDTH * ROWS }, (_, at) => {
      const row = Math.floor(at / WIDTH) * 2 * WIDTH;
      const [first, second] = [both[row + (at % WIDTH)]!, both[row + WIDTH + (at % WIDTH)]!];
      return swapped ? silu(second) * first : silu(first) * second;
    });
    const found = run(GLU.swiglu, [f32(both, 2 * WIDTH, ROWS)], swapped);
    expect(differing(found, expected, 1e-6)).toEqual([]);
  });

  it("with clamping, as in gpt-oss", () => {
    const [sharpness, most] = [1.702, 3];
    const [x, gate] = [numbersFrom(13, 30, 6), numbersFrom(14, 30, 6)];
    const parameters = new Int32Array([
      GLU.bounded,
      0,
      ...new Int32Array(new Float32Array([sharpness, most]).buffer),
    ]);
    const expected = Array.from(x, (value, at) => {
      const bounded = Math.min(value, most);
      const open = Math.min(Math.max(gate[at]!, -most), most) + 1;
      return (bounded / (1 + Math.exp(-sharpness * bounded))) * open;
    });
    const sources = [f32(x, WIDTH, ROWS), f32(gate, WIDTH, ROWS)];
    expect(
      differing(host.run({ op: OP.glu, parameters, sources, ne: [WIDTH, ROWS] }), expected, 1e-6),
    ).toEqual([]);
  });

  it("leave other kinds to llama.cpp", () => {
    expect(run(GLU.geglu_erf, [f32(new Float32Array(60), 20, ROWS)])).toBe(undefined);
  });
});

function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}

/** GELU of the half nearest to x, ties to even, from the table. */
function gelu(x: number): number {
  const magnitude = Math.abs(x);
  const step = 2 ** Math.max(Math.floor(Math.log2(magnitude)) - 10, -24);
  const nearest = Math.round(magnitude / step);
  const steps = (magnitude / step) % 1 === 0.5 && nearest % 2 === 1 ? nearest - 1 : nearest;
  // Above the subnormal halves there are 1024 steps between two powers of two; the nearest may be a power of two.
  const half = step === 2 ** -24 ? steps : 1024 * (Math.log2(step) + 24) + steps;
  return halfToNumber(TABLE[x < 0 ? half | 0x8000 : half]!);
}
