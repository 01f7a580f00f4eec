import { describe, expect, test } from "vitest";
import { PromptTurns } from "../../../../src/engine/core/prompt-turns.ts";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";

const NEVER = new AbortController().signal;

/** A generation whose events the test lets out one by one. */
function generation(turns: PromptTurns, signal = NEVER) {
  const channel = new TransformStream<GenerationEvent, GenerationEvent>();
  const writer = channel.writable.getWriter();
  const state = { begun: false, failure: undefined as unknown };
  const events = turns.take(async function* () {
    state.begun = true;
    yield* channel.readable;
  }, signal);
  const ended = (async () => {
    await Array.fromAsync(events);
  })().catch((error: unknown) => void (state.failure = error));
  return {
    state,
    ended,
    emit: async (event: GenerationEvent) => await writer.write(event),
    close: () => writer.close(),
  };
}

const progress = (processed: number): GenerationEvent => ({ type: "prompt-progress", processed, total: 20 });

describe("prompts on a shared context", () => {
  test("are computed one after another, while what is behind them goes on", async () => {
    const turns = new PromptTurns();
    const first = generation(turns);
    const second = generation(turns);
    await first.emit({ type: "start" });
    await first.emit(progress(10));
    expect([first.state.begun, second.state.begun]).toEqual([true, false]);
    await first.emit(progress(20));
    await expect.poll(() => second.state.begun).toBe(true);
    await Promise.all([second.close(), first.close()]);
    await Promise.all([first.ended, second.ended]);
  });

  test("wait no longer for one that has ended in its midst", async () => {
    const turns = new PromptTurns();
    const first = generation(turns);
    const second = generation(turns);
    await first.emit(progress(10));
    await first.close();
    await expect.poll(() => second.state.begun).toBe(true);
    await second.close();
    await second.ended;
  });

  test("wait for those before one that was cancelled, and not for that", async () => {
    const turns = new PromptTurns();
    const client = new AbortController();
    const first = generation(turns);
    const second = generation(turns, client.signal);
    const third = generation(turns);
    client.abort(new Error("gone"));
    await second.ended;
    expect(second.state).toMatchObject({ begun: false, failure: new Error("gone") });
    expect(third.state.begun).toBe(false);
    await first.close();
    await expect.poll(() => third.state.begun).toBe(true);
    await third.close();
    await third.ended;
  });
});
