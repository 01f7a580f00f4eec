import { describe, expect, test } from "vitest";
import { StepControl } from "../../../../src/engine/core/kernel-controls.ts";

const PAGE = 65_536;
const sharedMemory = (): WebAssembly.Memory =>
  new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });

/** Where wasm/kernels/steps.h reads it. */
const cells = (memory: WebAssembly.Memory): { tokens: number; leave: number } => {
  const view = new DataView(memory.buffer);
  return { tokens: view.getInt32(40, true), leave: view.getInt32(44, true) };
};

const MOST = 512;
const SLOTS = 4;

/** The sizes of steps of which each token takes so many milliseconds. */
function sizes(msPerToken: number, { alone = true, most = MOST, slots = SLOTS, count = 8 } = {}): number[] {
  const memory = sharedMemory();
  const steps = new StepControl(most, slots, memory);
  return Array.from({ length: count }, () => {
    steps.next(alone, false);
    const { tokens } = cells(memory);
    steps.measured(tokens, tokens * msPerToken);
    return tokens;
  });
}

describe("how many tokens of a prompt a step takes", () => {
  test("begins small, and grows to what takes two seconds where a request is alone", () => {
    expect(sizes(10)).toEqual([16, 32, 64, 128, 200, 200, 200, 200]);
  });

  test("is what takes 0.4 seconds where others wait", () => {
    expect(sizes(10, { alone: false })).toEqual([16, 32, 40, 40, 40, 40, 40, 40]);
  });

  test("is never more than llama.cpp was loaded for, nor less than a token for each slot", () => {
    expect(Math.max(...sizes(0.01))).toBe(MOST);
    expect(sizes(10_000, { alone: false, count: 2 })).toEqual([16, 4]);
    expect(sizes(10_000, { alone: false, slots: 6, count: 2 })).toEqual([16, 6]);
    expect(sizes(10, { most: 8 })[0]).toBe(8);
  });

  test("is no less than 32 where a request is alone, however long that takes", () => {
    expect(sizes(10_000, { count: 3 })).toEqual([16, 32, 32]);
  });

  test("shrinks at once when a second request comes", () => {
    const memory = sharedMemory();
    const steps = new StepControl(MOST, SLOTS, memory);
    steps.measured(100, 1000);
    steps.next(true, false);
    steps.measured(32, 320);
    steps.next(true, false);
    expect(cells(memory).tokens).toBe(64);
    steps.next(false, false);
    expect(cells(memory).tokens).toBe(40);
  });

  test.each([
    [300, 60],
    [128, 64],
    [65, 36],
    [64, 64],
    [10, 12],
    [0, 64],
  ])("divides what is left of a prompt evenly: of %i tokens %i", (left, expected) => {
    const memory = sharedMemory();
    const steps = new StepControl(64, SLOTS, memory);
    steps.measured(100, 1);
    steps.next(true, false);
    steps.next(true, false);
    steps.next(true, false, left);
    expect(cells(memory).tokens).toBe(expected);
  });

  test("is the whole step for a text that cannot be split", () => {
    const memory = sharedMemory();
    new StepControl(MOST, SLOTS, memory).next(true, true);
    expect(cells(memory).tokens).toBe(MOST);
  });
});

describe("the end of a step before its time", () => {
  test("is asked for until the next step begins, also in a memory that has grown", () => {
    const memory = sharedMemory();
    const steps = new StepControl(MOST, SLOTS, memory);
    steps.next(true, false);
    expect(cells(memory).leave).toBe(0);
    expect(memory.grow(1) * PAGE).toBe(PAGE);
    steps.leave();
    expect(cells(memory).leave).toBe(1);
    steps.next(true, false);
    expect(cells(memory).leave).toBe(0);
  });

  test("is not asked for where the memory is not shared", () => {
    const steps = new StepControl(MOST, SLOTS, undefined);
    expect(() => {
      steps.next(true, false);
      steps.leave();
    }).not.toThrow();
  });
});
