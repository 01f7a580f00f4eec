import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { Deadline } from "../../../src/inference/deadline.ts";
import type { EventReader } from "../../../src/inference/stream-filters.ts";
import { GenerationStream } from "../../../src/inference/generation-stream.ts";
import { aborted, DONE } from "../../support/fake-engine.ts";
import { never } from "./inference-setup.ts";

type Run = (onEvent: (event: GenerationEvent) => void, signal: AbortSignal) => Promise<void>;

/** A stream on a scripted engine, and what became of the two. */
function stream(run: Run, readers: readonly EventReader[] = [], signal = never) {
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
    readers,
    deadline: new Deadline(signal, Number.POSITIVE_INFINITY),
    held,
    onPrompt: () => undefined,
    onToken: () => undefined,
    fail: () => undefined,
    finish: (done) => ({ ...done, totalMs: 0, tokensPerSecond: 0 }),
  });
  return { state, began };
}

const text = (piece: string): GenerationEvent => ({ type: "text-delta", text: piece });

/** Says something, then waits for its signal. */
const endless: Run = async (onEvent, signal) => {
  onEvent({ type: "start" });
  await aborted(signal);
};

/** Ends an answer where "b" comes. */
const untilB: EventReader = (event) => (event.type === "text-delta" && event.text === "b" ? [DONE] : [event]);

const broken: EventReader = () => {
  throw new Error("cannot read this");
};

describe("a generation stream", () => {
  test("gives back what it holds before its reader sees the end", async () => {
    const { state, began } = stream(async (onEvent) => {
      for (const event of [{ type: "start" }, text("a"), DONE] as const) onEvent(event);
    });
    const seen: [type: string, released: number][] = [];
    for await (const { type } of await began) seen.push([type, state.released]);
    expect(seen.map(([type]) => type)).toEqual(["start", "text-delta", "done"]);
    expect(seen.at(-1)).toEqual(["done", 1]);
    expect(state).toEqual({ released: 1, engineAborted: false });
  });

  test("cancels the engine where a reader of its events ends the answer early", async () => {
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

  test("ends with the error of a reader that cannot read an event", async () => {
    const { state, began } = stream(endless, [broken]);
    await expect(began).rejects.toThrow("cannot read this");
    expect(state).toEqual({ released: 1, engineAborted: true });
  });

  test("ends an answer of which too much waits to be read", async () => {
    const { state, began } = stream(async (onEvent, signal) => {
      while (!signal.aborted) onEvent(text("x".repeat(1024 * 1024)));
      signal.throwIfAborted();
    });
    await expect((await began.catch(() => undefined))?.next() ?? began).rejects.toMatchObject({
      code: "overloaded",
    });
    expect(state).toEqual({ released: 1, engineAborted: true });
  });

  test("says so when the reader is too slow even for the last event", async () => {
    const { began } = stream(async (onEvent) => {
      onEvent({ type: "start" });
      // All that may wait but for some bytes: fewer than an event takes.
      onEvent(text("x".repeat((16 * 1024 * 1024 - 250) / 2)));
      onEvent(DONE);
    });
    await expect(Array.fromAsync(await began)).rejects.toMatchObject({ code: "overloaded" });
  });

  test("gives out what came before the engine failed, then the failure", async () => {
    const { state, began } = stream(async (onEvent) => {
      onEvent(text("a"));
      throw new Error("lost");
    });
    const events = await began;
    expect(await events.next()).toMatchObject({ value: { text: "a" } });
    await expect(events.next()).rejects.toThrow("lost");
    expect(state.released).toBe(1);
  });

  test("that the engine leaves unfinished is an error", async () => {
    const { began } = stream(async (onEvent) => onEvent({ type: "start" }));
    const events = await began;
    await events.next();
    await expect(events.next()).rejects.toMatchObject({ code: "inference_failed" });
  });

  test("gives back what it holds when its client goes while nobody reads", async () => {
    const client = new AbortController();
    const { state, began } = stream(endless, [], client.signal);
    await began;
    client.abort(new Error("gone"));
    await expect.poll(() => state).toEqual({ released: 1, engineAborted: true });
  });
});
