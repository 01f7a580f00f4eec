import { describe, expect, test } from "vitest";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";
import { DONE } from "../../support/fake-engine.ts";

const done: InferenceEvent = { ...DONE, totalMs: 50, tokensPerSecond: 100 };

async function* stream(...events: InferenceEvent[]): AsyncGenerator<InferenceEvent> {
  yield* events;
}

async function* failing(): AsyncGenerator<InferenceEvent> {
  yield { type: "start" };
  throw new Error("broken");
}

describe("collectAnswer", () => {
  test("joins the deltas of text, reasoning and tool calls", async () => {
    const logprob = { id: 1, token: "He", logprob: -0.1, bytes: null, top: [] };
    const answer = await collectAnswer(
      stream(
        { type: "start" },
        { type: "prompt-progress", processed: 1, total: 2 },
        { type: "reasoning-delta", text: "Let me " },
        { type: "reasoning-delta", text: "think." },
        { type: "text-delta", text: "He", logprobs: [logprob] },
        { type: "text-delta", text: "llo" },
        { type: "tool-call-start", index: 0, id: "call_a", name: "first" },
        { type: "tool-call-start", index: 1, id: "call_b", name: "second" },
        { type: "tool-call-delta", index: 0, arguments: '{"x":' },
        { type: "tool-call-delta", index: 1, arguments: "{}" },
        { type: "tool-call-delta", index: 0, arguments: "1}" },
        { ...done, reason: "tool_calls", stopSequence: "###" },
      ),
    );
    expect(answer).toEqual({
      text: "Hello",
      reasoning: "Let me think.",
      toolCalls: [
        { id: "call_a", name: "first", arguments: '{"x":1}' },
        { id: "call_b", name: "second", arguments: "{}" },
      ],
      logprobs: [logprob],
      reason: "tool_calls",
      stopSequence: "###",
      usage: DONE.usage,
      timings: DONE.timings,
      totalMs: 50,
      tokensPerSecond: 100,
    });
  });

  test("fails if the stream ends without its last event", async () => {
    await expect(collectAnswer(stream({ type: "text-delta", text: "Hel" }))).rejects.toMatchObject({
      code: "inference_failed",
    });
  });

  test("rethrows errors of the stream", async () => {
    await expect(collectAnswer(failing())).rejects.toThrow("broken");
  });
});
