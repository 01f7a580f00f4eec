import { expect, test } from "vitest";
import { PromptTurns } from "../../../../src/engine/core/prompt-turns.ts";
import { SharedRoom } from "../../../../src/engine/core/shared-room.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";

const NEVER = new AbortController().signal;
const ROOM_TOKENS = 1000;
const START: GenerationEvent = { type: "start" };
const PROGRESS: GenerationEvent = { type: "prompt-progress", processed: 1, total: 2 };
const TEXT: GenerationEvent = { type: "text-delta", text: "a" };

const turnsOf = (isShared: boolean): PromptTurns =>
  new PromptTurns(isShared ? new SharedRoom(ROOM_TOKENS, () => 0) : undefined, async (text) => text.length);

/** Begins generations that end only with the test; returns what sends their events, by the order in which they run. */
function begin(turns: PromptTurns, count: number): ((event: GenerationEvent) => void)[] {
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
