import { describe, expect, test } from "vitest";
import type { GenerationEvent, TokenLogprob } from "../../../src/engine/protocol/generation.ts";
import {
  dropReasoningEcho,
  dropTextTags,
  dropNonTextLogprobs,
  firstCallOnly,
  trimTemplateText,
} from "../../../src/inference/stream-filters.ts";
import { DONE, eventsOf } from "../../support/fake-engine.ts";
import { randomNumbers } from "../../support/random-numbers.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../api/recorded-events.ts";
import { randomPieces } from "./random-pieces.ts";
import { readEvents } from "./read-events.ts";

function dropUnseenLogprobsPiece(text: string, token: string): GenerationEvent {
  const logprob: TokenLogprob = { id: 1, token, logprob: -1, bytes: null, top: [] };
  return { type: "text-delta", text, logprobs: [logprob] };
}

test("only the log-probabilities of text tokens are kept", () => {
  function* stream(): Generator<GenerationEvent> {
    yield { type: "start" };
    yield { type: "reasoning-delta", text: "hm" };
    yield dropUnseenLogprobsPiece("", "hm");
    yield dropUnseenLogprobsPiece("", "</think>");
    yield dropUnseenLogprobsPiece("", "half a character");
    yield dropUnseenLogprobsPiece("ü", "ü");
    yield dropUnseenLogprobsPiece("", "half another");
    yield { type: "tool-call-start", index: 0, id: "1", name: "look" };
    yield dropUnseenLogprobsPiece("", "look");
    yield DONE;
  }
  expect(readEvents(dropNonTextLogprobs(), stream())).toEqual([
    { type: "start" },
    { type: "reasoning-delta", text: "hm" },
    dropUnseenLogprobsPiece("ü", "ü"),
    dropUnseenLogprobsPiece("", "half another"),
    { type: "tool-call-start", index: 0, id: "1", name: "look" },
    DONE,
  ]);
});

const isSecond = (event: GenerationEvent): boolean => "index" in event && event.index === 1;
const soFar = {
  usage: { promptTokens: 7, completionTokens: 20, cachedTokens: 2, reasoningTokens: 3 },
  timings: { promptMs: 5, completionMs: 40 },
};

test("the answer ends where a second call begins", () => {
  const at = THINKING_AND_TOOLS.findIndex(isSecond);
  const begun = THINKING_AND_TOOLS.slice(0, at);
  expect(THINKING_AND_TOOLS.length).toBeGreaterThan(at + 2);
  const events = THINKING_AND_TOOLS.map((event) =>
    isSecond(event) && event.type === "tool-call-start" ? { ...event, soFar } : event,
  );
  expect(readEvents(firstCallOnly(), events).slice(0, at + 1)).toEqual([
    ...begun,
    { type: "done", reason: "tool_calls", ...soFar },
  ]);
});

test("an answer with at most one call is unchanged", () => {
  expect(readEvents(firstCallOnly(), PLAIN_TEXT)).toEqual(PLAIN_TEXT);
  const single = THINKING_AND_TOOLS.filter((event) => !isSecond(event));
  expect(readEvents(firstCallOnly(), single)).toEqual(single);
});

const think = (text: string): GenerationEvent => ({ type: "reasoning-delta", text });
const say = (text: string): GenerationEvent => ({ type: "text-delta", text });
const done = eventsOf().at(-1);

function tidied(events: readonly GenerationEvent[], endOfTurn?: string, goesOn = false): string[] {
  return readEvents(trimTemplateText(endOfTurn, goesOn), [...events, done!]).flatMap((event) =>
    event.type === "text-delta" || event.type === "reasoning-delta" ? [`${event.type[0]}:${event.text}`] : [],
  );
}

describe("markup of a template is dropped from an answer", () => {
  test("whitespace around reasoning is dropped, but not within", () => {
    const events = [
      think("\n"),
      think("\nLet"),
      think(" \n"),
      think("me"),
      think("\n"),
      say("\n\n"),
      say("Yes "),
    ];
    expect(tidied(events)).toEqual(["r:Let", "r: \nme", "t:Yes "]);
  });

  test("leading whitespace of continued reasoning is kept", () => {
    expect(tidied([think(" so."), say("\n\nYes")], undefined, true)).toEqual(["r: so.", "t:Yes"]);
    expect(tidied([say(" fine")], undefined, true)).toEqual(["t: fine"]);
  });

  test("an answer without reasoning is unchanged", () => {
    expect(tidied([say("\n"), say(" yes\n")])).toEqual(["t:\n", "t: yes\n"]);
  });

  test("the end-of-turn token is dropped only at the end", () => {
    expect(tidied([say("a<end>"), say("b"), say("c<end>")], "<end>")).toEqual(["t:a<end>", "t:b", "t:c"]);
    expect(tidied([say("c<end>")])).toEqual(["t:c<end>"]);
  });
});

const dropReasoningEchoText = (piece: string): GenerationEvent => ({ type: "text-delta", text: piece });
const reasoning = (piece: string): GenerationEvent => ({ type: "reasoning-delta", text: piece });
const CALL: GenerationEvent = { type: "tool-call-start", index: 0, id: "1", name: "look" };

function read(...events: GenerationEvent[]): GenerationEvent[] {
  return readEvents(dropReasoningEcho(["<|calls|>", "<|call|>"]), events);
}

test("text that is repeated as reasoning is dropped", () => {
  expect(
    read(
      reasoning("If "),
      dropReasoningEchoText("<|"),
      dropReasoningEchoText("ca"),
      reasoning("<|cat"),
      reasoning("s"),
      DONE,
    ),
  ).toEqual([reasoning("If "), reasoning("<|cat"), reasoning("s"), DONE]);
});

test("text after reasoning is kept, even if it begins like a tag", () => {
  const events = [
    reasoning("Hm."),
    dropReasoningEchoText("<|"),
    dropReasoningEchoText("b|> "),
    dropReasoningEchoText("<|"),
    DONE,
  ];
  expect(read(...events)).toEqual(events);
});

test.each([DONE, CALL])("text that is only the beginning of a tag is kept before %j", (end) => {
  const events = [reasoning("Hm."), dropReasoningEchoText("<|"), end];
  expect(read(...events)).toEqual(events);
});

test("text without reasoning is emitted at once", () => {
  expect(read(dropReasoningEchoText("<|"))).toEqual([dropReasoningEchoText("<|")]);
});

const TAGS = { start: "<response>", end: "</response>" };

function textOf(pieces: readonly string[]): string {
  const events = readEvents(dropTextTags(TAGS), eventsOf(...pieces));
  return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
}

test.each([
  ["<response>It is fine.</response>", "It is fine."],
  ["\n<response>It is</response>\n", "It is"],
  ["It is <response>fine</response>", "It is <response>fine</response>"],
  ["<response>a </response> b</resp", "a </response> b</resp"],
  ["<resp", "<resp"],
  ["<response>cut of", "cut of"],
])("tags are dropped from the text of %j", (whole, expected) => {
  const random = randomNumbers(5);
  for (let round = 0; round < 50; round += 1) expect(textOf(randomPieces(whole, random))).toBe(expected);
});
