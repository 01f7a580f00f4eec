import { setImmediate as promisesSetImmediate } from "node:timers/promises";
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

function room(contextTokens: number) {
  let steps = 0;
  const shared = new SharedContext(contextTokens, () => steps);
  const enter = (maxTokens?: number, promptTokens = 0, signal = NEVER): Promise<ContextShare> =>
    shared.enter({ promptTokens, maxTokens, signal });
  return { shared, enter, step: (count = 1) => (steps += count) };
}

describe("answers in a shared context", () => {
  test("end one by one before it is full, and what one leaves is free for the others", async () => {
    const { enter, step } = room(100);
    const [first, second] = [await enter(), await enter()];
    for (const share of [first, second]) expect(share.take(prompt(20))).toBe(true);
    let count = 0;
    do {
      step();
      count += 1;
    } while (first.take(token(count)) && second.take(token(count)));
    expect(40 + 2 * count).toBeLessThan(100);
    expect(40 + 2 * count).toBeGreaterThan(88);
    expect([first, second].map((share) => share.take(token(count + 1)))).toEqual([true, true]);
  });

  test("count tokens without results by the steps that have been", async () => {
    const { enter, step } = room(100);
    const [silent, other] = [await enter(), await enter()];
    for (const share of [silent, other]) share.take(prompt(20));
    expect(silent.take(token(1))).toBe(true);
    step(50);
    expect(silent.tokens).toBe(51);
    expect(other.take(token(10))).toBe(false);
    expect(silent.take(HIDDEN)).toBe(true);
    expect(silent.tokens).toBe(51);
    silent.take(token(5));
    expect(silent.tokens).toBe(5);
  });

  test("whose limits fit together are never ended", async () => {
    const { enter, step } = room(100);
    const [first, second] = [await enter(30), await enter(30)];
    for (const share of [first, second]) share.take(prompt(20));
    for (let count = 1; count <= 30; count += 1) {
      step();
      expect([first.take(token(count)), second.take(token(count))]).toEqual([true, true]);
    }
  });

  test("of which one is alone may go to the end", async () => {
    const { enter, step } = room(100);
    const only = await enter();
    only.take(prompt(20));
    step();
    expect(only.take(token(79))).toBe(true);
  });

  test("end for a prompt that comes later, which is not read before", async () => {
    const { enter, step } = room(100);
    const [first, second] = [await enter(), await enter()];
    for (const share of [first, second]) share.take(prompt(20));
    step();
    expect([first, second].map((share) => share.take(token(20)))).toEqual([true, true]);
    let isIn = false;
    const later = enter(undefined, 20).then((share) => {
      isIn = true;
      return share;
    });
    await promisesSetImmediate();
    expect(isIn).toBe(false);
    expect([first, second].map((share) => share.take(token(21)))).toEqual([false, true]);
    const third = await later;
    expect(third.take(prompt(16))).toBe(true);
    expect(third.claim).toBe(19);
  });

  test("do not wait or end for a prompt that fits in no context, which is refused", async () => {
    const { enter, step } = room(100);
    const first = await enter();
    first.take(prompt(20));
    step();
    await enter(undefined, 100);
    expect(first.take(token(60))).toBe(true);
  });

  test("leave nothing behind of a prompt that was canceled while it waited", async () => {
    const { shared, enter, step } = room(100);
    const first = await enter();
    first.take(prompt(20));
    step();
    first.take(token(60));
    const canceled = new AbortController();
    const later = enter(undefined, 50, canceled.signal);
    canceled.abort(new Error("canceled"));
    await expect(later).rejects.toThrow("canceled");
    expect(first.take(token(61))).toBe(true);
    first[Symbol.dispose]();
    expect(shared.isEmpty).toBe(true);
  });
});

const ROOM_TOKENS = 1000;
const START: GenerationEvent = { type: "start" };
const PROGRESS: GenerationEvent = { type: "prompt-progress", processed: 1, total: 2 };
const TEXT: GenerationEvent = { type: "text-delta", text: "a" };

const turnsOf = (isShared: boolean): PromptSchedule =>
  new PromptSchedule(
    isShared ? new SharedContext(ROOM_TOKENS, () => 0) : undefined,
    async (text) => text.length,
  );

/** Begins generations that end only with the test; returns what sends their events, by the order in which they run. */
function begin(turns: PromptSchedule, count: number): ((event: GenerationEvent) => void)[] {
  const running: ((event: GenerationEvent) => void)[] = [];
  for (let at = 0; at < count; at++) {
    const run = (onEvent: (event: GenerationEvent) => void): Promise<void> => {
      running.push(onEvent);
      return new Promise(() => {});
    };
    void turns.generate(run, () => {}, NEVER);
  }
  return running;
}

const settled = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a prompt is read in a shared context when the one before it has been read whole", async () => {
  const running = begin(turnsOf(true), 2);
  await settled();
  for (const event of [START, PROGRESS]) running[0]?.(event);
  await settled();
  expect(running).toHaveLength(1);
  running[0]?.(TEXT);
  await settled();
  expect(running).toHaveLength(2);
});

test("prompts of separate contexts do not wait for each other", () => {
  expect(begin(turnsOf(false), 2)).toHaveLength(2);
});

test("a text that must be read alone keeps a prompt out of a shared context until it has been read", async () => {
  const turns = turnsOf(true);
  const alone = await turns.alone(NEVER);
  const running = begin(turns, 1);
  await settled();
  expect(running).toHaveLength(0);
  alone[Symbol.dispose]();
  await settled();
  expect(running).toHaveLength(1);
});

test("room is waited for in a shared context alone", async () => {
  expect(await turnsOf(false).enter("a text", 5, NEVER)).toBeUndefined();
  const turns = turnsOf(true);
  const first = await turns.enter("a".repeat(900), 5, NEVER);
  first?.take([{ prompt_progress: { processed: 900, total: 900, cache: 0, time_ms: 0 } }]);
  let hasEntered = false;
  void turns.enter("a".repeat(900), 5, NEVER).then(() => (hasEntered = true));
  await settled();
  expect(hasEntered).toBe(false);
  first?.[Symbol.dispose]();
  await settled();
  expect(hasEntered).toBe(true);
});
