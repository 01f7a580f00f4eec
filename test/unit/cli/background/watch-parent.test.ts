import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { parentGone, runsBelowNpm, withoutNpm } from "../../../../src/cli/background/watch-parent.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("notices that the parent is gone", () => {
  let parent = 41;
  const gone = parentGone(() => parent);
  vi.advanceTimersByTime(5000);
  expect(gone.aborted).toBe(false);
  parent = 1;
  vi.advanceTimersByTime(1000);
  expect(gone.aborted).toBe(true);
});

it("knows an npm script, and lets a process out of it", () => {
  const env = { npm_lifecycle_event: "start", HOME: "/home" };
  expect(runsBelowNpm(env)).toBe(true);
  expect(runsBelowNpm(withoutNpm(env))).toBe(false);
  expect(withoutNpm(env)).toEqual({ HOME: "/home" });
});
