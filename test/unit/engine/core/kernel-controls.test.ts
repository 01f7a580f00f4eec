import { describe, expect, test } from "vitest";
import { StepControl } from "../../../../src/engine/core/kernel-controls.ts";

const PAGE = 65_536;
const sharedMemory = (): WebAssembly.Memory =>
  new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });

/** Cells that wasm/kernels/steps.h reads. */
const cells = (memory: WebAssembly.Memory): { tokens: number; abort: number } => {
  const view = new DataView(memory.buffer);
  return { tokens: view.getInt32(40, true), abort: view.getInt32(44, true) };
};

const MAX_TOKENS = 512;
const SLOTS = 4;

/** Sizes of consecutive steps if each token takes so many milliseconds. */
function sizes(
  msPerToken: number,
  { isOnlyRequest = true, max = MAX_TOKENS, slots = SLOTS, count = 8 } = {},
): number[] {
  const memory = sharedMemory();
  const steps = new StepControl(max, slots, memory);
  return Array.from({ length: count }, () => {
    steps.prepareStep(isOnlyRequest, false);
    const { tokens } = cells(memory);
    steps.recordStep(tokens, tokens * msPerToken);
    return tokens;
  });
}

describe("the number of prompt tokens in a step", () => {
  test("starts small and grows to two seconds for a single request", () => {
    expect(sizes(10)).toEqual([16, 32, 64, 128, 200, 200, 200, 200]);
  });

  test("grows to 0.4 seconds if there are several requests", () => {
    expect(sizes(10, { isOnlyRequest: false })).toEqual([16, 32, 40, 40, 40, 40, 40, 40]);
  });

  test("is at most the batch size and at least one token per slot", () => {
    expect(Math.max(...sizes(0.01))).toBe(MAX_TOKENS);
    expect(sizes(10_000, { isOnlyRequest: false, count: 2 })).toEqual([16, 4]);
    expect(sizes(10_000, { isOnlyRequest: false, slots: 6, count: 2 })).toEqual([16, 6]);
    expect(sizes(10, { max: 8 })[0]).toBe(8);
  });

  test("is at least 32 for a single request, even on a slow machine", () => {
    expect(sizes(10_000, { count: 3 })).toEqual([16, 32, 32]);
  });

  test("shrinks immediately when a second request arrives", () => {
    const memory = sharedMemory();
    const steps = new StepControl(MAX_TOKENS, SLOTS, memory);
    steps.recordStep(100, 1000);
    steps.prepareStep(true, false);
    steps.recordStep(32, 320);
    steps.prepareStep(true, false);
    expect(cells(memory).tokens).toBe(64);
    steps.prepareStep(false, false);
    expect(cells(memory).tokens).toBe(40);
  });

  test.each([
    [300, 60],
    [128, 64],
    [65, 36],
    [64, 64],
    [10, 12],
    [0, 64],
  ])("divides the rest of a prompt evenly: of %i tokens %i", (left, expected) => {
    const memory = sharedMemory();
    const steps = new StepControl(64, SLOTS, memory);
    steps.recordStep(100, 1);
    steps.prepareStep(true, false);
    steps.prepareStep(true, false);
    steps.prepareStep(true, false, left);
    expect(cells(memory).tokens).toBe(expected);
  });

  test("is the batch size for a text that cannot be split", () => {
    const memory = sharedMemory();
    new StepControl(MAX_TOKENS, SLOTS, memory).prepareStep(true, true);
    expect(cells(memory).tokens).toBe(MAX_TOKENS);
  });
});

describe("the abortion of a step", () => {
  test("is requested until the next step begins, also after the memory has grown", () => {
    const memory = sharedMemory();
    const steps = new StepControl(MAX_TOKENS, SLOTS, memory);
    steps.prepareStep(true, false);
    expect(cells(memory).abort).toBe(0);
    expect(memory.grow(1) * PAGE).toBe(PAGE);
    steps.abortStep();
    expect(cells(memory).abort).toBe(1);
    steps.prepareStep(true, false);
    expect(cells(memory).abort).toBe(0);
  });

  test("is not possible if the memory is not shared", () => {
    const steps = new StepControl(MAX_TOKENS, SLOTS, undefined);
    expect(() => {
      steps.prepareStep(true, false);
      steps.abortStep();
    }).not.toThrow();
  });
});
