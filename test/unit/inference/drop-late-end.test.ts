import { describe, expect, test } from "vitest";
import type { GenerationEvent, TokenLogprob } from "../../../src/engine/protocol/generation.ts";
import { dropLateEnd, tagsOfTemplate } from "../../../src/inference/drop-late-end.ts";
import { DONE } from "../../support/fake-engine.ts";
import { randomPieces } from "./random-pieces.ts";
import { readEvents } from "./read-events.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

const TAGS = { start: "<think>", end: "</think>" };
const LONG = "All of this is too long to be held back. ".repeat(5);

function text(piece: string): GenerationEvent {
  return { type: "text-delta", text: piece };
}

function logprob(token: string): TokenLogprob {
  return { id: 1, token, logprob: -1, bytes: null, top: [] };
}

function read(reasoning: string, pieces: readonly string[], budget = 2): { reasoning: string; text: string } {
  const thought: GenerationEvent[] = reasoning === "" ? [] : [{ type: "reasoning-delta", text: reasoning }];
  const result = { reasoning: "", text: "" };
  for (const event of readEvents(dropLateEnd({ budget, tags: TAGS }), [
    ...thought,
    ...pieces.map(text),
    DONE,
  ])) {
    if (event.type === "reasoning-delta") result.reasoning += event.text;
    else if (event.type === "text-delta") result.text += event.text;
  }
  return result;
}

describe("after reasoning that was cut off", () => {
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
  ])("%j, %j", ([reasoning, answer, expected]) => {
    expect(read(reasoning, Array.from(answer))).toEqual(expected);
    const random = randomNumbers(3);
    for (let round = 0; round < 100; round += 1) {
      const pieces = randomPieces(answer, random);
      expect({ pieces, ...read(reasoning, pieces) }).toEqual({ pieces, ...expected });
    }
  });

  test("a long answer is sent before its end, with the log-probabilities of its pieces", () => {
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

test("a model that has ended its reasoning before its budget may answer with tags, at once", () => {
  const reader = dropLateEnd({ budget: 1024, tags: TAGS });
  const events: GenerationEvent[] = [{ type: "reasoning-delta", text: "Tags?" }, text("It is </think>.")];
  expect(readEvents(reader, events)).toEqual(events);
});

test("the tags are those of the template", () => {
  expect(tagsOfTemplate("{% if '</think>' in content %}")).toEqual(TAGS);
  expect(tagsOfTemplate("{{ messages }}")).toBeUndefined();
  expect(tagsOfTemplate(undefined)).toBeUndefined();
});
