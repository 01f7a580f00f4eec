import { setImmediate as nextTick } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { CompletionChunk } from "../../../../src/engine/core/loop-request.ts";
import {
  PromptSchedule,
  type ContextShare,
  SharedContext,
} from "../../../../src/engine/core/shared-context.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";

const prompt = (total: number): CompletionChunk[] => [{ prompt_progress: { processed: 0, total } }];
const token = (predicted_n: number): CompletionChunk[] => [
  { choices: [], timings: { prompt_ms: 1, predicted_ms: 1, predicted_n } },
];
const NEVER = new AbortController().signal;
/** Markup, or a part of a character. */
const HIDDEN: CompletionChunk[] = [];

function contextOf(contextTokens: number) {
  let steps = 0;
  const shared = new SharedContext(contextTokens, () => steps);
  const enter = (maxTokens?: number, promptTokens = 0, signal = NEVER): Promise<ContextShare> =>
    shared.enter({ promptTokens, maxTokens, signal });
  return { shared, enter, step: (count = 1) => (steps += count) };
}

describe("SharedContext", () => {
  test("ends one answer before the context is full, so that its space is free for the others", async () => {
    const { enter, step } = contextOf(100);
    const [first, second] = [await enter(), await enter()];
    for (const share of [first, second]) expect(share.update(prompt(20))).toBe(true);
    let count = 0;
    do {
      step();
      count += 1;
    } while (first.update(token(count)) && second.update(token(count)));
    expect(40 + 2 * count).toBeLessThan(100);
    expect(40 + 2 * count).toBeGreaterThan(88);
    expect([first, second].map((share) => share.update(token(count + 1)))).toEqual([true, true]);
  });

  test("counts steps for tokens that yield no result", async () => {
    const { enter, step } = contextOf(100);
    const [silent, other] = [await enter(), await enter()];
    for (const share of [silent, other]) share.update(prompt(20));
    expect(silent.update(token(1))).toBe(true);
    step(50);
    expect(silent.tokens).toBe(51);
    expect(other.update(token(10))).toBe(false);
    expect(silent.update(HIDDEN)).toBe(true);
    expect(silent.tokens).toBe(51);
    silent.update(token(5));
    expect(silent.tokens).toBe(5);
  });

  test("never ends answers whose token limits fit into the context together", async () => {
    const { enter, step } = contextOf(100);
    const [first, second] = [await enter(30), await enter(30)];
    for (const share of [first, second]) share.update(prompt(20));
    for (let count = 1; count <= 30; count += 1) {
      step();
      expect([first.update(token(count)), second.update(token(count))]).toEqual([true, true]);
    }
  });

  test("lets a single answer fill the context", async () => {
    const { enter, step } = contextOf(100);
    const only = await enter();
    only.update(prompt(20));
    step();
    expect(only.update(token(79))).toBe(true);
  });

  test("delays a new prompt until an answer has ended to free space for it", async () => {
    const { enter, step } = contextOf(100);
    const [first, second] = [await enter(), await enter()];
    for (const share of [first, second]) share.update(prompt(20));
    step();
    expect([first, second].map((share) => share.update(token(20)))).toEqual([true, true]);
    let isIn = false;
    const later = enter(undefined, 20).then((share) => {
      isIn = true;
      return share;
    });
    await nextTick();
    expect(isIn).toBe(false);
    expect([first, second].map((share) => share.update(token(21)))).toEqual([false, true]);
    const third = await later;
    expect(third.update(prompt(16))).toBe(true);
    expect(third.reservedTokens).toBe(19);
  });

  test("ends no answer for a prompt that exceeds the context", async () => {
    const { enter, step } = contextOf(100);
    const first = await enter();
    first.update(prompt(20));
    step();
    await enter(undefined, 100);
    expect(first.update(token(60))).toBe(true);
  });

  test("removes a prompt that was canceled while it waited", async () => {
    const { shared, enter, step } = contextOf(100);
    const first = await enter();
    first.update(prompt(20));
    step();
    first.update(token(60));
    const canceled = new AbortController();
    const later = enter(undefined, 50, canceled.signal);
    canceled.abort(new Error("canceled"));
    await expect(later).rejects.toThrow("canceled");
    expect(first.update(token(61))).toBe(true);
    first[Symbol.dispose]();
    expect(shared.isEmpty).toBe(true);
  });
});

const CONTEXT_TOKENS = 1000;
const START: GenerationEvent = { type: "start" };
const PROGRESS: GenerationEvent = { type: "prompt-progress", processed: 1, total: 2 };
const TEXT: GenerationEvent = { type: "text-delta", text: "a" };

const scheduleOf = (isShared: boolean): PromptSchedule =>
  new PromptSchedule(
    isShared ? new SharedContext(CONTEXT_TOKENS, () => 0) : undefined,
    async (text) => text.length,
  );

/** Starts generations that never end. Returns the event senders of those that run, in order. */
function begin(schedule: PromptSchedule, count: number): ((event: GenerationEvent) => void)[] {
  const running: ((event: GenerationEvent) => void)[] = [];
  for (let at = 0; at < count; at++) {
    const run = (onEvent: (event: GenerationEvent) => void): Promise<void> => {
      running.push(onEvent);
      return new Promise(() => {});
    };
    void schedule.generate(run, () => {}, NEVER);
  }
  return running;
}

const settled = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("processes prompts in a shared context one after another", async () => {
  const running = begin(scheduleOf(true), 2);
  await settled();
  for (const event of [START, PROGRESS]) running[0]?.(event);
  await settled();
  expect(running).toHaveLength(1);
  running[0]?.(TEXT);
  await settled();
  expect(running).toHaveLength(2);
});

test("does not delay prompts in separate contexts", () => {
  expect(begin(scheduleOf(false), 2)).toHaveLength(2);
});

test("delays a prompt in a shared context while prompts are locked", async () => {
  const schedule = scheduleOf(true);
  const lock = await schedule.lockPrompts(NEVER);
  const running = begin(schedule, 1);
  await settled();
  expect(running).toHaveLength(0);
  lock[Symbol.dispose]();
  await settled();
  expect(running).toHaveLength(1);
});

test("waits for free space only in a shared context", async () => {
  expect(await scheduleOf(false).enter("a text", 5, NEVER)).toBeUndefined();
  const schedule = scheduleOf(true);
  const first = await schedule.enter("a".repeat(900), 5, NEVER);
  first?.update([{ prompt_progress: { processed: 900, total: 900, cache: 0, time_ms: 0 } }]);
  let hasEntered = false;
  void schedule.enter("a".repeat(900), 5, NEVER).then(() => (hasEntered = true));
  await settled();
  expect(hasEntered).toBe(false);
  first?.[Symbol.dispose]();
  await settled();
  expect(hasEntered).toBe(true);
});
