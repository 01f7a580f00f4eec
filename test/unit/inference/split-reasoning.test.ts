import { describe, expect, test } from "vitest";
import type { GenerationEvent, TokenLogprob } from "../../../src/engine/protocol/generation.ts";
import { splitReasoning } from "../../../src/inference/split-reasoning.ts";
import { eventsOf } from "../../support/fake-engine.ts";
import { randomPieces } from "./random-pieces.ts";
import { readEvents } from "./read-events.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

const TAGS = { start: "<think>", end: "</think>" };

function logprob(token: string): TokenLogprob {
  return { id: 1, token, logprob: -1, bytes: null, top: [] };
}

function split(...texts: string[]): { reasoning: string; text: string } {
  const result = { reasoning: "", text: "" };
  for (const event of readEvents(splitReasoning(TAGS), eventsOf(...texts))) {
    if (event.type === "reasoning-delta") result.reasoning += event.text || "(an empty piece)";
    else if (event.type === "text-delta") result.text += event.text;
  }
  return result;
}

describe("splitReasoning", () => {
  test.for<[string, string, string]>([
    ["<think>because</think>So it is.", "because", "So it is."],
    ["\n <think>\nwhy\n</think>\n\nAnswer\n", "why", "Answer\n"],
    ["No thought at all", "", "No thought at all"],
    ["  kept as it is ", "", "  kept as it is "],
    ["<think></think>done", "", "done"],
    ["<think>never ended", "never ended", ""],
    ["<thin is not the tag", "", "<thin is not the tag"],
    ["<thi", "", "<thi"],
    ["Text with <think>a tag</think> in it", "", "Text with <think>a tag</think> in it"],
    ["<think>a </thin b</think>c <think>d</think>", "a </thin b", "c <think>d</think>"],
    ["", "", ""],
  ])("splits %j", ([whole, reasoning, text]) => {
    expect(split(whole)).toEqual({ reasoning, text });
    const random = randomNumbers(7);
    for (let round = 0; round < 200; round += 1) {
      const pieces = randomPieces(whole, random);
      expect({ pieces, ...split(...pieces) }).toEqual({ pieces, reasoning, text });
    }
  });

  test("the last event comes last, and nothing is held back before it", () => {
    const types: string[] = [];
    for (const { type } of readEvents(splitReasoning(TAGS), eventsOf("<th"))) types.push(type);
    expect(types).toEqual(["start", "text-delta", "done"]);
  });

  test("log-probabilities stay with the text and leave the reasoning", () => {
    const pieces = ["<think>", "a", "</think>", "b", " c"];
    const events = pieces.map((text): GenerationEvent => ({
      type: "text-delta",
      text,
      logprobs: [logprob(text)],
    }));
    const tokens: string[] = [];
    for (const event of readEvents(splitReasoning(TAGS), events)) {
      if (event.type === "text-delta") tokens.push(...(event.logprobs ?? []).map(({ token }) => token));
    }
    expect(tokens).toEqual(["b", " c"]);
  });
});
