import { describe, expect, test } from "vitest";
import { Outbox } from "../../../../src/engine/host/outbox.ts";
import type { TokenLogprob } from "../../../../src/engine/protocol/generation.ts";
import type { EngineMessage } from "../../../../src/engine/protocol/messages.ts";

/** A channel whose writes complete only when `written` is called. */
function slowChannel(): { outbox: Outbox; sent: EngineMessage[]; written: () => void } {
  const sent: EngineMessage[] = [];
  const pending: (() => void)[] = [];
  const outbox = new Outbox((message, written) => {
    sent.push(message);
    pending.push(written);
  });
  return { outbox, sent, written: () => pending.splice(0).forEach((done) => done()) };
}

const text = (value: string) => ({ type: "text-delta", text: value }) as const;

const progress = (processed: number) => ({ type: "prompt-progress", processed, total: 3 }) as const;

const tokens = (...ids: number[]) => ({ type: "tokens" as const, ids, replaced: 0 });

const figures = (completionTokens: number) => ({
  usage: { promptTokens: 1, completionTokens, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 1, completionMs: 1 },
});

const logprob = (token: string): TokenLogprob => ({ id: 1, token, logprob: -1, bytes: null, top: [] });

describe("Outbox", () => {
  test("sends events immediately while the channel is free", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, text("a"));
    written();
    outbox.pushEvent(1, text("b"));
    expect(sent).toEqual([
      { type: "events", call: 1, events: [text("a")] },
      { type: "events", call: 1, events: [text("b")] },
    ]);
  });

  test("sends the start immediately, and prompt progress together with the text that follows", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, { type: "start" });
    written();
    outbox.pushEvent(1, tokens(7));
    outbox.pushEvent(1, progress(3));
    expect(sent).toEqual([{ type: "events", call: 1, events: [{ type: "start" }] }]);
    outbox.pushEvent(1, text("a"));
    expect(sent[1]).toEqual({ type: "events", call: 1, events: [tokens(7), progress(3), text("a")] });
  });

  test.each([progress(1), tokens(8)])("sends an event without text after a delay: %o", async (event) => {
    const { outbox, sent } = slowChannel();
    outbox.pushEvent(1, event);
    expect(sent).toEqual([]);
    await expect.poll(() => sent).toHaveLength(1);
    expect(sent).toEqual([{ type: "events", call: 1, events: [event] }]);
  });

  test("joins pending tokens and their text, with the tokens before the text", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, text("first"));
    outbox.pushEvent(1, tokens(7));
    outbox.pushEvent(1, text("a"));
    outbox.pushEvent(1, { ...tokens(8), replaced: 1 });
    outbox.pushEvent(1, text("b"));
    written();
    expect(sent[1]).toEqual({
      type: "events",
      call: 1,
      events: [
        { type: "tokens", ids: [7, 8], replaced: 1 },
        { ...text("ab"), ends: [1, 2] },
      ],
    });
  });

  test("joins pending text while the channel is busy, with the end of each token", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, text("first"));
    outbox.pushEvent(1, text("a"));
    outbox.pushEvent(1, text("b"));
    outbox.pushEvent(1, { type: "reasoning-delta", text: "c" });
    outbox.pushEvent(1, { type: "reasoning-delta", text: "d" });
    outbox.pushEvent(2, text("other"));
    expect(sent).toHaveLength(1);
    written();
    expect(sent.slice(1)).toEqual([
      {
        type: "events",
        call: 1,
        events: [
          { ...text("ab"), ends: [1, 2] },
          { type: "reasoning-delta", text: "cd", ends: [1, 2] },
        ],
      },
      { type: "events", call: 2, events: [text("other")] },
    ]);
  });

  test("joins the log probabilities of joined text", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, text("first"));
    outbox.pushEvent(1, { ...text("a"), logprobs: [logprob("a")] });
    outbox.pushEvent(1, { ...text("b"), logprobs: [logprob("b")] });
    written();
    expect(sent[1]).toMatchObject({ events: [{ text: "ab", logprobs: [{ token: "a" }, { token: "b" }] }] });
  });

  test("reports the figures of the last event for joined text", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, text("first"));
    outbox.pushEvent(1, { ...text("a"), soFar: figures(1) });
    outbox.pushEvent(1, { ...text("b"), soFar: figures(2) });
    written();
    expect(sent[1]).toMatchObject({ events: [{ text: "ab", soFar: { usage: { completionTokens: 2 } } }] });
  });

  test("does not join the log probabilities of reasoning with those of text", () => {
    const { outbox, sent, written } = slowChannel();
    const events = [
      { ...text(""), logprobs: [logprob("hm")] },
      { ...text("a"), logprobs: [logprob("a")] },
    ];
    outbox.pushEvent(1, text("first"));
    for (const event of events) outbox.pushEvent(1, { ...event });
    written();
    expect(sent[1]).toEqual({ type: "events", call: 1, events });
  });

  test("sends pending events before the end of their call", () => {
    const { outbox, sent } = slowChannel();
    outbox.pushEvent(1, text("first"));
    outbox.pushEvent(1, text("a"));
    outbox.push({ type: "cancelled", call: 1 });
    expect(sent.map(({ type }) => type)).toEqual(["events", "events", "cancelled"]);
  });
});
