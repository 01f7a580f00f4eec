import { describe, expect, test } from "vitest";
import type { CompletionChunk } from "../../../../src/engine/core/completion-chunk.ts";
import { SharedRoom } from "../../../../src/engine/core/shared-room.ts";

const prompt = (total: number): CompletionChunk[] => [{ prompt_progress: { processed: 0, total } }];
const token = (predicted_n: number): CompletionChunk[] => [
  { choices: [], timings: { prompt_ms: 1, predicted_ms: 1, predicted_n } },
];
/** Markup, or a part of a character. */
const HIDDEN: CompletionChunk[] = [];

function room(contextTokens: number) {
  let steps = 0;
  const shared = new SharedRoom(contextTokens, () => steps);
  return { shared, step: (count = 1) => (steps += count) };
}

describe("answers in a shared context", () => {
  test("end one by one before it is full, and what one leaves is free for the others", () => {
    const { shared, step } = room(100);
    const [first, second] = [shared.enter(undefined), shared.enter(undefined)];
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

  test("count tokens without results by the steps that have been", () => {
    const { shared, step } = room(100);
    const [silent, other] = [shared.enter(undefined), shared.enter(undefined)];
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

  test("whose limits fit together are never ended", () => {
    const { shared, step } = room(100);
    const [first, second] = [shared.enter(30), shared.enter(30)];
    for (const share of [first, second]) share.take(prompt(20));
    for (let count = 1; count <= 30; count += 1) {
      step();
      expect([first.take(token(count)), second.take(token(count))]).toEqual([true, true]);
    }
  });

  test("of which one is alone may go to the end", () => {
    const { shared, step } = room(100);
    const only = shared.enter(undefined);
    only.take(prompt(20));
    step();
    expect(only.take(token(79))).toBe(true);
  });
});
