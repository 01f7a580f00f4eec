import { beforeEach, describe, expect, it } from "vitest";
import { GraphHost } from "../../support/graph-host.ts";

const OP = { add: 2, multiply: 7, rmsNorm: 25, scale: 32, view: 37, logarithm: 11 } as const;
const floats = (...values: number[]): Int32Array => new Int32Array(new Float32Array(values).buffer);

let host: GraphHost;
beforeEach(async () => {
  host = await GraphHost.start();
});

const scaled = (source: number, factor: number) =>
  ({ op: OP.scale, parameters: floats(factor, 0), sources: [source], ne: [2] }) as const;

describe("a graph", () => {
  it("is computed node by node", () => {
    const x = host.add({ ne: [2], values: [1, 2] });
    const double = host.add(scaled(x, 2));
    const sum = host.add({ op: OP.add, sources: [double, x], ne: [2] });
    const half = host.add(scaled(sum, 0.5));
    expect(host.run([double, sum, half])).toMatchObject({ left: 0, last: 0 });
    expect(host.values(half)).toEqual([1.5, 3]);
  });

  it("may have nodes without computation, views, or no nodes", () => {
    const x = host.add({ ne: [2], values: [1, 2] });
    const skipped = host.add({ ...scaled(x, 2), isComputed: false });
    const view = host.add({ op: OP.view, sources: [x], ne: [2], inPlaceOf: x });
    const empty = host.add({ op: OP.logarithm, sources: [x], ne: [0] });
    const tripled = host.add(scaled(view, 3));
    expect(host.run([skipped, view, empty, tripled, x]).left).toBe(0);
    expect(host.values(skipped)).toEqual([Number.NaN, Number.NaN]);
    expect(host.values(tripled)).toEqual([3, 6]);
    expect(host.run([]).left).toBe(0);
  });

  it("passes each unsupported node to llama.cpp's function, once and alone", () => {
    const x = host.add({ ne: [2], values: [1, 2] });
    const first = host.add({ op: OP.logarithm, sources: [x], ne: [2] });
    const double = host.add(scaled(x, 2));
    const last = host.add({ op: OP.logarithm, sources: [x], ne: [2] });
    expect(host.run([first, double])).toMatchObject({ left: 1, last: first });
    expect(host.values(double)).toEqual([2, 4]);
    expect(host.run([first, double, last])).toMatchObject({ left: 2, last });
  });

  it("is aborted before the requested node", () => {
    const x = host.add({ ne: [2], values: [1, 2] });
    const [double, triple, half] = [2, 3, 0.5].map((factor) => host.add(scaled(x, factor)));
    host.run([double!, triple!, half!], { leaveBefore: 2 });
    expect([double!, triple!, half!].map((node) => host.values(node)[0])).toEqual([2, 3, Number.NaN]);
  });

  it("is left to llama.cpp if its reference implementation is requested", () => {
    const x = host.add({ ne: [2], values: [1, 2] });
    expect(host.run([host.add(scaled(x, 2))], { useReference: true }).left).toBe(1);
  });
});

const NORMALIZED = [3, 4].map((value) => value / Math.sqrt(12.5));

function normAndProduct(inPlace: boolean) {
  const x = host.add({ ne: [2, 2], values: [3, 4, 6, 8] });
  const weights = host.add({ ne: [2], values: [1, 10] });
  const norm = host.add({ op: OP.rmsNorm, parameters: floats(0), sources: [x], ne: [2, 2] });
  const product = { op: OP.multiply, sources: [norm, weights], ne: [2, 2] };
  return { norm, product: host.add(inPlace ? { ...product, inPlaceOf: norm } : product), x };
}

const closeTo = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 5) as unknown);

describe("a norm multiplied by weights", () => {
  it.each([true, false])("is multiplied once, in place: %s", (inPlace) => {
    const { norm, product } = normAndProduct(inPlace);
    expect(host.run([norm, product]).left).toBe(0);
    const [a, b] = [NORMALIZED[0]!, 10 * NORMALIZED[1]!];
    expect(host.values(product)).toEqual(closeTo([a, b, a, b]));
    const alone = closeTo([...NORMALIZED, ...NORMALIZED]);
    expect(host.values(norm)).toEqual(inPlace ? host.values(product) : alone);
  });

  it("does not affect later nodes", () => {
    const { norm, product } = normAndProduct(true);
    const after = host.add({ op: OP.add, sources: [product, product], ne: [2, 2] });
    host.run([norm, product, after]);
    expect(host.values(after)).toEqual(closeTo(host.values(product).map((value) => 2 * value)));
  });

  it("is multiplied even if the graph is aborted between the two nodes", () => {
    const { norm, product } = normAndProduct(true);
    const after = host.add({ op: OP.add, sources: [product, product], ne: [2, 2] });
    host.run([norm, product, after], { leaveBefore: 1 });
    expect(host.values(product)).toEqual(
      closeTo([NORMALIZED[0]!, 10 * NORMALIZED[1]!, NORMALIZED[0]!, 10 * NORMALIZED[1]!]),
    );
    expect(host.values(after)[0]).toBeNaN();
  });

  it("may be the last node", () => {
    const { norm } = normAndProduct(true);
    host.run([norm]);
    expect(host.values(norm)).toEqual(closeTo([...NORMALIZED, ...NORMALIZED]));
  });

  it("is not fused with a product of itself", () => {
    const { norm } = normAndProduct(true);
    const square = host.add({ op: OP.multiply, sources: [norm, norm], ne: [2, 2], inPlaceOf: norm });
    host.run([norm, square]);
    const squares = NORMALIZED.map((value) => value ** 2);
    expect(host.values(square)).toEqual(closeTo([...squares, ...squares]));
  });
});
