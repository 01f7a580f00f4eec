import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LateRecords } from "../../../src/fleet/late-records.ts";

const MEBIBYTE = 1024 * 1024;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A place that can be away, and what it has got. */
function place() {
  const stored: string[] = [];
  const state = { isAway: true };
  const late = new LateRecords(async (name) => {
    if (!state.isAway) stored.push(name);
    return !state.isAway;
  });
  return { late, stored, state };
}

test("records are stored in their order once their place is back, each once, apart from removed ones", async () => {
  const { late, stored, state } = place();
  for (const name of ["a", "b", "c"]) late.add(name, Buffer.from("record"));
  late.remove("b");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(stored).toEqual([]);
  state.isAway = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(stored).toEqual(["a", "c"]);
  late.add("d", Buffer.from("record"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(stored).toEqual(["a", "c", "d"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("the oldest make room, so that the memory they take has a bound", async () => {
  const { late, stored, state } = place();
  const large = new Uint8Array(20 * MEBIBYTE);
  for (const name of ["a", "b", "c", "d"]) late.add(name, large);
  state.isAway = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(stored).toEqual(["b", "c", "d"]);
});
