import { expect, test } from "vitest";
import { BoundedRing } from "../../../../src/daemon/activity/history.ts";

const numbers = (ring: BoundedRing<string>, after = 0): number[] =>
  ring.after(after).map(({ number }) => number);

test("BoundedRing keeps the newest entries within its count", () => {
  const ring = new BoundedRing<string>({ maxCount: 3, maxBytes: 1000 });
  for (let number = 1; number <= 10; number += 1) ring.add(number, `entry ${number}`, 10);
  expect(ring.after(0)).toEqual([8, 9, 10].map((number) => ({ number, entry: `entry ${number}` })));
});

test("BoundedRing keeps the newest entries within its bytes, and none that exceeds them alone", () => {
  const ring = new BoundedRing<string>({ maxCount: 100, maxBytes: 100 });
  ring.add(1, "a", 40);
  ring.add(2, "b", 40);
  ring.add(3, "c", 90);
  expect(numbers(ring)).toEqual([3]);
  ring.add(4, "d", 101);
  expect(numbers(ring)).toEqual([]);
});

test("BoundedRing returns the entries after a number", () => {
  const ring = new BoundedRing<string>({ maxCount: 100, maxBytes: 1000 });
  for (const number of [2, 5, 9]) ring.add(number, "", 1);
  expect(numbers(ring, 2)).toEqual([5, 9]);
  expect(numbers(ring, 9)).toEqual([]);
});

test("BoundedRing stays within its limits for many entries", () => {
  const ring = new BoundedRing<string>({ maxCount: 50, maxBytes: 5000 });
  for (let number = 1; number <= 20_000; number += 1) {
    ring.add(number, "x", (number * 37) % 300);
    const kept = numbers(ring);
    expect(kept.length).toBeLessThanOrEqual(50);
    expect(kept.reduce((sum, each) => sum + ((each * 37) % 300), 0)).toBeLessThanOrEqual(5000);
  }
});
