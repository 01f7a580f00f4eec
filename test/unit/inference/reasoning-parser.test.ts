import { describe, expect, test } from "vitest";
import type { GenerationEvent, TokenLogprob } from "../../../src/engine/protocol/generation.ts";
import { dropLateEnd, splitReasoning, tagsOfTemplate } from "../../../src/inference/reasoning-parser.ts";
import { DONE, eventsOf } from "../../support/fake-engine.ts";
import { randomNumbers } from "../../support/random-numbers.ts";
import { randomPieces } from "./random-pieces.ts";
import { readEvents } from "./read-events.ts";

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

  test("emits all buffered text before the last event", () => {
    const types: string[] = [];
    for (const { type } of readEvents(splitReasoning(TAGS), eventsOf("<th"))) types.push(type);
    expect(types).toEqual(["start", "text-delta", "done"]);
  });

  test("keeps the log-probabilities of the text and drops those of the reasoning", () => {
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

const LONG = "All of this is too long to be held back. ".repeat(5);

function dropLateEndText(piece: string): GenerationEvent {
  return { type: "text-delta", text: piece };
}

function read(reasoning: string, pieces: readonly string[], budget = 2): { reasoning: string; text: string } {
  const thought: GenerationEvent[] = reasoning === "" ? [] : [{ type: "reasoning-delta", text: reasoning }];
  const result = { reasoning: "", text: "" };
  for (const event of readEvents(dropLateEnd({ budget, tags: TAGS }), [
    ...thought,
    ...pieces.map(dropLateEndText),
    DONE,
  ])) {
    if (event.type === "reasoning-delta") result.reasoning += event.text;
    else if (event.type === "text-delta") result.text += event.text;
  }
  return result;
}

describe("reasoning that continues after its budget", () => {
  test.for<[reasoning: string, answer: string, expected: { reasoning: string; text: string }]>([
    ["I", "I add 7.\n</think>\n\n7 + 5", { reasoning: "I\nI add 7.", text: "7 + 5" }],
    ["", "I add 7.\n</think>\n\n7 + 5", { reasoning: "I add 7.", text: "7 + 5" }],
    ["I", "</think>\n\n12", { reasoning: "I", text: "12" }],
    ["I", "I add 7.</think>", { reasoning: "I\nI add 7.", text: "" }],
    ["I", "It is 12. </th", { reasoning: "I", text: "It is 12. </th" }],
    ["I", `${LONG}</think>\n\n12`, { reasoning: "I", text: `${LONG}\n\n12` }],
    ["I", `${LONG}</thin> is 12.`, { reasoning: "I", text: `${LONG}</thin> is 12.` }],
    ["I", "Use <think>x</think> here", { reasoning: "I", text: "Use <think>x</think> here" }],
    ["I", `${LONG}<think>x</think>`, { reasoning: "I", text: `${LONG}<think>x</think>` }],
    ["I", "a</think>b</think>", { reasoning: "I\na", text: "b" }],
    ["I", `${LONG}</think>b</think></think>c`, { reasoning: "I", text: `${LONG}bc` }],
  ])("ends at the second end tag: %j, %j", ([reasoning, answer, expected]) => {
    expect(read(reasoning, Array.from(answer))).toEqual(expected);
    const random = randomNumbers(3);
    for (let round = 0; round < 100; round += 1) {
      const pieces = randomPieces(answer, random);
      expect({ pieces, ...read(reasoning, pieces) }).toEqual({ pieces, ...expected });
    }
  });

  test("a long answer is streamed with the log-probabilities of its deltas", () => {
    const pieces = [LONG, "so ", "</", "think>", " 12"];
    const events = pieces.map((piece): GenerationEvent => ({
      type: "text-delta",
      text: piece,
      logprobs: [logprob(piece)],
    }));
    const reader = dropLateEnd({ budget: 0, tags: TAGS });
    expect(Array.from(reader(events[0]!))).toEqual([events[0]]);
    expect(readEvents(reader, events.slice(1))).toEqual([events[1], events[4]]);
  });
});

test("tags in an answer are text if the reasoning ended before its budget", () => {
  const reader = dropLateEnd({ budget: 1024, tags: TAGS });
  const events: GenerationEvent[] = [
    { type: "reasoning-delta", text: "Tags?" },
    dropLateEndText("It is </think>."),
  ];
  expect(readEvents(reader, events)).toEqual(events);
});

test("the reasoning tags are found in the chat template", () => {
  expect(tagsOfTemplate("{% if '</think>' in content %}")).toEqual(TAGS);
  expect(tagsOfTemplate("{{ messages }}")).toBeUndefined();
  expect(tagsOfTemplate(undefined)).toBeUndefined();
});
