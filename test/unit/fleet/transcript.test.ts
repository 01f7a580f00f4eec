import { describe, expect, test } from "vitest";
import { AnswerDiffers, Transcript } from "../../../src/fleet/transcript.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";

const done: InferenceEvent = {
  type: "done",
  reason: "stop",
  usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 1, completionMs: 1 },
  totalMs: 2,
  tokensPerSecond: 1,
};
const text = (piece: string): InferenceEvent => ({ type: "text-delta", text: piece });
const think = (piece: string): InferenceEvent => ({ type: "reasoning-delta", text: piece });
const call = (index: number, name: string, id: string): InferenceEvent => ({
  type: "tool-call-start",
  index,
  id,
  name,
});
const argument = (index: number, piece: string): InferenceEvent => ({
  type: "tool-call-delta",
  index,
  arguments: piece,
});

const token = (piece: string, id: number) => ({ id, token: piece, logprob: -1, bytes: null, top: [] });
const progress = (processed: number): InferenceEvent => ({ type: "prompt-progress", processed, total: 9 });

function taken(transcript: Transcript, events: readonly InferenceEvent[]): InferenceEvent[] {
  return events.map((event) => transcript.newPart(event)).filter((event) => event !== undefined);
}

describe("a repeated answer", () => {
  test("continues where the first one ended, however the text is split", () => {
    const transcript = new Transcript();
    taken(transcript, [{ type: "start" }, think("I think"), text("Hel"), text("lo w")]);
    transcript.rewind();
    const again = [
      { type: "start" } as const,
      think("I "),
      think("think"),
      text("Hello"),
      text(" world"),
      done,
    ];
    expect(taken(transcript, again)).toEqual([text("orld"), done]);
  });

  test("may be interrupted several times, also while it repeats", () => {
    const transcript = new Transcript();
    taken(transcript, [text("abc")]);
    transcript.rewind();
    taken(transcript, [text("ab")]);
    transcript.rewind();
    expect(taken(transcript, [text("abcd"), done])).toEqual([text("d"), done]);
  });

  test("keeps the ids of known tool calls, and passes on new ones", () => {
    const transcript = new Transcript();
    taken(transcript, [call(0, "look", "one"), argument(0, '{"a"')]);
    transcript.rewind();
    const again = [
      call(0, "look", "two"),
      argument(0, '{"a":1}'),
      call(1, "look", "three"),
      argument(1, "{}"),
      done,
    ];
    expect(taken(transcript, again)).toEqual([
      argument(0, ":1}"),
      call(1, "look", "three"),
      argument(1, "{}"),
      done,
    ]);
  });

  test("has only the log-probabilities of new tokens", () => {
    const transcript = new Transcript();
    const said = (piece: string, ...logprobs: readonly ReturnType<typeof token>[]): InferenceEvent => ({
      type: "text-delta",
      text: piece,
      logprobs: [...logprobs],
    });
    const half = said("", token("", 2));
    taken(transcript, [said("ab", token("ab", 1)), half]);
    transcript.rewind();
    const again = [said("abc", token("ab", 1), token("", 2), token("c", 3)), half];
    expect(taken(transcript, again)).toEqual([said("c", token("c", 3)), half]);
    transcript.rewind();
    expect(taken(transcript, [said("ab", token("ab", 1)), half, said("c", token("c", 3)), half])).toEqual([]);
  });

  test("reports no token twice", () => {
    const transcript = new Transcript();
    transcript.newTokens([token("x", 1), token("x", 2)]);
    transcript.rewind();
    expect(transcript.newTokens([token("x", 1)])).toEqual([]);
    expect(transcript.newTokens([token("x", 2), token("x", 3)])).toEqual([token("x", 3)]);
  });

  test.each([
    ["has another text", [text("abX")]],
    ["ends earlier", [text("a"), done]],
    ["has reasoning in place of text", [think("abc")]],
    ["has a tool call in place of text", [call(0, "look", "one")]],
  ])("throws AnswerDiffers if it %s", (_what, again) => {
    const transcript = new Transcript();
    taken(transcript, [text("abc")]);
    transcript.rewind();
    expect(() => taken(transcript, again)).toThrow(AnswerDiffers);
  });

  test("has prompt progress only before any output", () => {
    const transcript = new Transcript();
    expect(taken(transcript, [progress(3)])).toEqual([progress(3)]);
    transcript.rewind();
    expect(taken(transcript, [progress(1), progress(5), text("a")])).toEqual([progress(5), text("a")]);
    transcript.rewind();
    expect(taken(transcript, [progress(9)])).toEqual([]);
  });
});
