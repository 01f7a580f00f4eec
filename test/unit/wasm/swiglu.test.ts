import { describe, expect, it } from "vitest";
import { KernelHost } from "../../support/kernel-host.ts";
import { differing, numbersFrom } from "./numbers.ts";

const host = await KernelHost.start();

function reference(numbers: Float32Array, gates: Float32Array): number[] {
  return Array.from(numbers, (x, at) => (x / (1 + Math.exp(-x))) * gates[at]!);
}

describe("swiglu", () => {
  it.each([1, 2, 3, 4, 5, 63, 1000])("of %i numbers", (count) => {
    const [numbers, gates] = [numbersFrom(1, count, 20), numbersFrom(2, count, 3)];
    expect(differing(host.swiglu(numbers, gates), reference(numbers, gates), 1e-6)).toEqual([]);
  });

  it("of extreme numbers", () => {
    const numbers = new Float32Array([0, 1e-40, -1e-40, 88, 87, -80, 1000, 3e38, -87.9]);
    const ones = new Float32Array(numbers.length).fill(1);
    expect(differing(host.swiglu(numbers, ones), reference(numbers, ones), 2e-6)).toEqual([]);
    const low = host.swiglu(new Float32Array([-89, -100, -1000, -3e38]), ones.subarray(0, 4));
    expect(Array.from(low, Math.abs)).toEqual([0, 0, 0, 0]);
  });

  it("keeps a NaN", () => {
    const found = host.swiglu(new Float32Array([1, Number.NaN, 2]), new Float32Array([1, 1, Number.NaN]));
    expect(Array.from(found, (value) => Number.isNaN(value))).toEqual([false, true, true]);
  });
});
