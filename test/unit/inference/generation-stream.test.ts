import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { Deadline } from "../../../src/inference/deadline.ts";
import type { EventFilter } from "../../../src/inference/stream-filters.ts";
import { GenerationStream } from "../../../src/inference/generation-stream.ts";
import { aborted, DONE } from "../../support/fake-engine.ts";
import { never } from "./inference-setup.ts";

type Run = (onEvent: (event: GenerationEvent) => void, signal: AbortSignal) => Promise<void>;

/** Creates a stream on a scripted engine, and records how both end. */
function stream(run: Run, readers: readonly EventFilter[] = [], signal = never) {
  const state = { released: 0, engineAborted: false };
  const held = { [Symbol.dispose]: () => void (state.released += 1) };
  const began = GenerationStream.begin({
    run: async (onEvent, abort) => {
      try {
        await run(onEvent, abort);
      } finally {
        state.engineAborted = abort.aborted;
      }
    },
    filters: readers,
    deadline: new Deadline(signal, Number.POSITIVE_INFINITY),
    resources: held,
    onPrompt: () => undefined,
    onToken: () => undefined,
    fail: () => undefined,
    finish: (done) => ({ ...done, totalMs: 0, tokensPerSecond: 0 }),
  });
  return { state, began };
}

const text = (piece: string): GenerationEvent => ({ type: "text-delta", text: piece });

/** Generates a delta, then waits for the signal. */
const endless: Run = async (onEvent, signal) => {
  onEvent({ type: "start" });
  await aborted(signal);
};

/** Filter that ends an answer at "b". */
const untilB: EventFilter = (event) => (event.type === "text-delta" && event.text === "b" ? [DONE] : [event]);

const broken: EventFilter = () => {
  throw new Error("cannot read this");
};

describe("a generation stream", () => {
  test("disposes its resources before its reader sees the end", async () => {
    const { state, began } = stream(async (onEvent) => {
      for (const event of [{ type: "start" }, text("a"), DONE] as const) onEvent(event);
    });
    const seen: [type: string, released: number][] = [];
    for await (const { type } of await began) seen.push([type, state.released]);
    expect(seen.map(([type]) => type)).toEqual(["start", "text-delta", "done"]);
    expect(seen.at(-1)).toEqual(["done", 1]);
    expect(state).toEqual({ released: 1, engineAborted: false });
  });

  test("cancels the engine if a filter ends the answer early", async () => {
    const { state, began } = stream(
      async (onEvent, signal) => {
        for (const piece of ["a", "b", "c"]) onEvent(text(piece));
        await aborted(signal);
      },
      [untilB],
    );
    const events = await Array.fromAsync(await began);
    expect(events).toMatchObject([{ text: "a" }, { type: "done", totalMs: 0 }]);
    expect(state).toEqual({ released: 1, engineAborted: true });
  });

  test("ends with the error of a filter", async () => {
    const { state, began } = stream(endless, [broken]);
    await expect(began).rejects.toThrow("cannot read this");
    expect(state).toEqual({ released: 1, engineAborted: true });
  });

  test("ends an answer whose unread events exceed the buffer", async () => {
    const { state, began } = stream(async (onEvent, signal) => {
      while (!signal.aborted) onEvent(text("x".repeat(1024 * 1024)));
      signal.throwIfAborted();
    });
    await expect((await began.catch(() => undefined))?.next() ?? began).rejects.toMatchObject({
      code: "overloaded",
    });
    expect(state).toEqual({ released: 1, engineAborted: true });
  });

  test("reports a slow reader even at the last event", async () => {
    const { began } = stream(async (onEvent) => {
      onEvent({ type: "start" });
      // Fills the buffer except for fewer bytes than an event takes.
      onEvent(text("x".repeat((16 * 1024 * 1024 - 250) / 2)));
      onEvent(DONE);
    });
    await expect(Array.fromAsync(await began)).rejects.toMatchObject({ code: "overloaded" });
  });

  test("yields the events before a failure of the engine, then the error", async () => {
    const { state, began } = stream(async (onEvent) => {
      onEvent(text("a"));
      throw new Error("lost");
    });
    const events = await began;
    expect(await events.next()).toMatchObject({ value: { text: "a" } });
    await expect(events.next()).rejects.toThrow("lost");
    expect(state.released).toBe(1);
  });

  test("fails if the engine ends without the last event", async () => {
    const { began } = stream(async (onEvent) => onEvent({ type: "start" }));
    const events = await began;
    await events.next();
    await expect(events.next()).rejects.toMatchObject({ code: "inference_failed" });
  });

  test("disposes its resources if the client disconnects without a reader", async () => {
    const client = new AbortController();
    const { state, began } = stream(endless, [], client.signal);
    await began;
    client.abort(new Error("gone"));
    await expect.poll(() => state).toEqual({ released: 1, engineAborted: true });
  });
});
