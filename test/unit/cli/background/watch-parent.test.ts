import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  parentGone,
  type ProcessTable,
  runsBelowNpm,
  withoutNpm,
} from "../../../../src/cli/background/watch-parent.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const [US, LAUNCHER, SHELL, NPM, LOGIN, INIT] = [50, 40, 30, 20, 10, 1];

/** A family of processes: each with its parent. Who is not in it is dead; shells of npm are named. */
function family(parents: Map<number, number>): ProcessTable {
  return {
    ownParent: () => parents.get(US) ?? INIT,
    parentOf: (pid) => parents.get(pid),
    isCommandShell: (pid) => pid === SHELL,
    isAlive: (pid) => parents.has(pid),
  };
}

describe("the end of who started a process", () => {
  it.each<[string, number[], boolean, (all: Map<number, number>) => unknown, boolean]>([
    ["its parent ends", [US, NPM, LOGIN], false, (all) => all.set(US, INIT), true],
    ["npm is killed behind its shell", [US, SHELL, NPM, LOGIN], false, (all) => all.set(SHELL, INIT), true],
    [
      "npm is killed behind shell and launcher",
      [US, LAUNCHER, SHELL, NPM],
      true,
      (all) => all.set(SHELL, INIT),
      true,
    ],
    [
      "npm is killed behind the launcher",
      [US, LAUNCHER, NPM, LOGIN],
      true,
      (all) => all.set(LAUNCHER, INIT),
      true,
    ],
    [
      "the shell that npm was started from ends",
      [US, SHELL, NPM, LOGIN],
      false,
      (all) => all.set(NPM, INIT),
      false,
    ],
    [
      "its parent dies where children keep their parent's id",
      [US, NPM, LOGIN],
      false,
      (all) => all.delete(NPM),
      true,
    ],
  ])("is noticed, or not, when %s", (_what, chain, hasLauncher, change, expected) => {
    const parents = new Map<number, number>(chain.map((pid, index) => [pid, chain[index + 1] ?? INIT]));
    const gone = parentGone(hasLauncher, family(parents));
    vi.advanceTimersByTime(5000);
    expect(gone.aborted).toBe(false);
    change(parents);
    vi.advanceTimersByTime(1000);
    expect(gone.aborted).toBe(expected);
  });
});

it("knows an npm script, and lets a process out of it", () => {
  const env = { npm_lifecycle_event: "start", HOME: "/home" };
  expect(runsBelowNpm(env)).toBe(true);
  expect(runsBelowNpm(withoutNpm(env))).toBe(false);
  expect(withoutNpm(env)).toEqual({ HOME: "/home" });
});
