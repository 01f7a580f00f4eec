import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  parentExitSignal,
  type ProcessTable,
  runsBelowNpm,
  withoutNpmVariables,
} from "../../../../src/cli/background/watch-parent.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const [US, LAUNCHER, SHELL, NPM, LOGIN, INIT] = [50, 40, 30, 20, 10, 1];

/** Process table with the parent of each running process. */
function family(parents: Map<number, number>): ProcessTable {
  return {
    currentParent: () => parents.get(US) ?? INIT,
    parentOf: (pid) => parents.get(pid),
    isCommandShell: (pid) => pid === SHELL,
    isAlive: (pid) => parents.has(pid),
  };
}

describe("parentExitSignal", () => {
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
  ])("aborts, or does not, when %s", (_what, chain, hasLauncher, change, expected) => {
    const parents = new Map<number, number>(chain.map((pid, index) => [pid, chain[index + 1] ?? INIT]));
    const gone = parentExitSignal(hasLauncher, family(parents));
    vi.advanceTimersByTime(5000);
    expect(gone.aborted).toBe(false);
    change(parents);
    vi.advanceTimersByTime(1000);
    expect(gone.aborted).toBe(expected);
  });
});

it("withoutNpmVariables makes a process independent of npm", () => {
  const env = { npm_lifecycle_event: "start", HOME: "/home" };
  expect(runsBelowNpm(env)).toBe(true);
  expect(runsBelowNpm(withoutNpmVariables(env))).toBe(false);
  expect(withoutNpmVariables(env)).toEqual({ HOME: "/home" });
});
