import { expect, test } from "vitest";
import type { GenerationEvent, TokenLogprob } from "../../../src/engine/protocol/generation.ts";
import { dropUnseenLogprobs } from "../../../src/inference/drop-unseen-logprobs.ts";
import { DONE } from "../../support/fake-engine.ts";
import { readEvents } from "./read-events.ts";

function piece(text: string, token: string): GenerationEvent {
  const logprob: TokenLogprob = { id: 1, token, logprob: -1, bytes: null, top: [] };
  return { type: "text-delta", text, logprobs: [logprob] };
}

test("only the tokens of the text keep their log-probabilities", () => {
  function* stream(): Generator<GenerationEvent> {
    yield { type: "start" };
    yield { type: "reasoning-delta", text: "hm" };
    yield piece("", "hm");
    yield piece("", "</think>");
    yield piece("", "half a character");
    yield piece("ü", "ü");
    yield piece("", "half another");
    yield { type: "tool-call-start", index: 0, id: "1", name: "look" };
    yield piece("", "look");
    yield DONE;
  }
  expect(readEvents(dropUnseenLogprobs(), stream())).toEqual([
    { type: "start" },
    { type: "reasoning-delta", text: "hm" },
    piece("ü", "ü"),
    piece("", "half another"),
    { type: "tool-call-start", index: 0, id: "1", name: "look" },
    DONE,
  ]);
});
