import { describe, expect, test } from "vitest";
import { Outbox } from "../../../../src/engine/host/outbox.ts";
import type { TokenLogprob } from "../../../../src/engine/protocol/generation.ts";
import type { EngineMessage } from "../../../../src/engine/protocol/messages.ts";

/** A channel that says only when told that it has written. */
function slowChannel(): { outbox: Outbox; sent: EngineMessage[]; written: () => void } {
  const sent: EngineMessage[] = [];
  const pending: (() => void)[] = [];
  const outbox = new Outbox((message, written) => {
    sent.push(message);
    pending.push(written);
  });
  return { outbox, sent, written: () => pending.splice(0).forEach((done) => done()) };
}

const text = (piece: string) => ({ type: "text-delta", text: piece }) as const;

const logprob = (token: string): TokenLogprob => ({ token, logprob: -1, bytes: null, top: [] });

describe("events on their way to the daemon", () => {
  test("go at once while the channel is free", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, { type: "start" });
    written();
    outbox.pushEvent(1, text("a"));
    expect(sent).toEqual([
      { type: "events", call: 1, events: [{ type: "start" }] },
      { type: "events", call: 1, events: [text("a")] },
    ]);
  });

  test("are gathered while it is not, with neighbouring text joined", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, { type: "start" });
    outbox.pushEvent(1, text("a"));
    outbox.pushEvent(1, text("b"));
    outbox.pushEvent(1, { type: "reasoning-delta", text: "c" });
    outbox.pushEvent(1, { type: "reasoning-delta", text: "d" });
    outbox.pushEvent(2, text("other"));
    expect(sent).toHaveLength(1);
    written();
    expect(sent.slice(1)).toEqual([
      { type: "events", call: 1, events: [text("ab"), { type: "reasoning-delta", text: "cd" }] },
      { type: "events", call: 2, events: [text("other")] },
    ]);
  });

  test("keep their log-probabilities when they are joined", () => {
    const { outbox, sent, written } = slowChannel();
    outbox.pushEvent(1, { type: "start" });
    outbox.pushEvent(1, { ...text("a"), logprobs: [logprob("a")] });
    outbox.pushEvent(1, { ...text("b"), logprobs: [logprob("b")] });
    written();
    expect(sent[1]).toMatchObject({ events: [{ text: "ab", logprobs: [{ token: "a" }, { token: "b" }] }] });
  });

  test("stay in order with the end of their call", () => {
    const { outbox, sent } = slowChannel();
    outbox.pushEvent(1, { type: "start" });
    outbox.pushEvent(1, text("a"));
    outbox.push({ type: "cancelled", call: 1 });
    expect(sent.map(({ type }) => type)).toEqual(["events", "events", "cancelled"]);
  });
});
