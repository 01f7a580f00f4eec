import { randoms } from "../../support/randoms.ts";

/** Numbers between -most and most; the same for the same seed. */
export function numbersFrom(seed: number, count: number, most: number): Float32Array {
  const random = randoms(seed + 1);
  return Float32Array.from({ length: count }, () => (2 * random() - 1) * most);
}

/** Numbers that differ from the expected ones by more than a relative error; all if there are no numbers. */
export function differing(
  found: Float32Array | undefined,
  expected: readonly number[],
  tolerance: number,
): { at: number; got: number; value: number }[] {
  return expected.flatMap((value, at) => {
    const got = found?.[at] ?? Number.NaN;
    return Math.abs(got - value) <= tolerance * Math.abs(value) + 1e-38 ? [] : [{ at, got, value }];
  });
}
