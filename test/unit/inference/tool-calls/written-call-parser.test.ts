import { describe, expect, test } from "vitest";
import type { FinishReason, GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { traitsOf } from "../../../../src/inference/chat-template.ts";
import {
  type CallFormat,
  readWrittenCalls,
} from "../../../../src/inference/tool-calls/written-call-parser.ts";
import { eventsOf } from "../../../support/fake-engine.ts";
import { randomPieces } from "../random-pieces.ts";
import { readEvents } from "../read-events.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

function formatOf(template: string): CallFormat {
  const { calls } = traitsOf(template);
  if (!calls) throw new Error("the family has no format");
  return calls;
}

const LLAMA = formatOf("This model only supports single tool-calls at once!");
const MISTRAL = formatOf("[TOOL_CALLS] [CALL_ID] [ARGS]");
const GRANITE = formatOf("<|tool_call|> followed by a JSON list of tools used");
const NAMES = ["get", "get_time"];

const DONE: Extract<GenerationEvent, { type: "done" }> = {
  type: "done",
  reason: "stop",
  usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 0, completionMs: 0 },
};

const letters = (text: string): string[] => Array.from(text);

/** Collects an answer: its text, and each call as its name and arguments. */
function read(
  format: CallFormat,
  pieces: readonly string[],
  { parallel = true, reason = "stop" }: { parallel?: boolean; reason?: FinishReason } = {},
): string[] {
  const events = eventsOf(...pieces);
  const reader = readWrittenCalls(format, { names: NAMES, parallel, makeId: () => "id" });
  const parts: string[] = [];
  let text = "";
  for (const event of readEvents(reader, [...events.slice(0, -1), { ...DONE, reason }])) {
    if (event.type === "text-delta") text += event.text;
    else if (event.type === "tool-call-start") parts.push(`${event.index} ${event.name} `);
    else if (event.type === "tool-call-delta") parts[parts.length - 1] += event.arguments;
    else if (event.type === "done") parts.push(event.reason);
  }
  return text === "" ? parts : [text, ...parts];
}

describe.each<[string, CallFormat, string, string[]]>([
  ["Llama, a call", LLAMA, '{"name": "get", "parameters": {"a": "}"}}', ['0 get {"a": "}"}', "tool_calls"]],
  [
    "Llama, with a tag and a longer name",
    LLAMA,
    '<|python_tag|>{"name": "get_time", "parameters": {}}',
    ["0 get_time {}", "tool_calls"],
  ],
  [
    "Llama, two calls",
    LLAMA,
    '{"name":"get","parameters":{}}; {"name":"get_time","parameters":{"b":[1]}}',
    ["0 get {}", '1 get_time {"b":[1]}', "tool_calls"],
  ],
  ["Llama, JSON that is not a call", LLAMA, 'So {"a": 1} is {.', ['So {"a": 1} is {.', "stop"]],
  [
    "Llama, a call of an unknown tool",
    LLAMA,
    '{"name": "other", "parameters": {}}',
    ['{"name": "other", "parameters": {}}', "stop"],
  ],
  [
    "Llama, text before a call",
    LLAMA,
    'I look.\n\n{"name": "get", "parameters": {}}',
    ["I look.", "0 get {}", "tool_calls"],
  ],
  [
    "Mistral, two calls",
    MISTRAL,
    '[TOOL_CALLS]get[CALL_ID]abc123456[ARGS]{"a": "[x"}[TOOL_CALLS]get_time[ARGS]{}',
    ['0 get {"a": "[x"}', "1 get_time {}", "tool_calls"],
  ],
  ["Mistral, brackets that are not a tag", MISTRAL, "see [TOOL, and [", ["see [TOOL, and [", "stop"]],
  [
    "Granite, a list whose tag is hidden",
    GRANITE,
    '[{"name": "get", "arguments": {"a": 1}}, {"name": "get_time", "arguments": {}}]',
    ['0 get {"a": 1}', "1 get_time {}", "tool_calls"],
  ],
  [
    "Granite, a list behind its tag",
    GRANITE,
    '<|tool_call|>[{"name": "get", "arguments": {}}]',
    ["0 get {}", "tool_calls"],
  ],
])("calls in the format of a family: %s", (_, format, whole, expected) => {
  test("are parsed however the text is split", () => {
    expect(read(format, [whole])).toEqual(expected);
    expect(read(format, letters(whole))).toEqual(expected);
    const random = randomNumbers(3);
    for (let round = 0; round < 50; round += 1)
      expect(read(format, randomPieces(whole, random))).toEqual(expected);
  });
});

test("arguments are streamed, even of a truncated call", () => {
  const begun = '{"name": "get", "parameters": {"a": "b';
  expect(read(LLAMA, letters(begun), { reason: "length" })).toEqual(['0 get {"a": "b', "length"]);
});

test("a call that is truncated before its arguments is dropped", () => {
  expect(read(MISTRAL, letters("[TOOL_CALLS]ge"), { reason: "length" })).toEqual(["length"]);
  expect(read(LLAMA, letters('{"name": "ge'), { reason: "length" })).toEqual(["length"]);
});

test("all calls but the first are dropped if only one is allowed", () => {
  const two = '{"name":"get","parameters":{}};{"name":"get_time","parameters":{}}';
  expect(read(LLAMA, [two], { parallel: false })).toEqual(["0 get {}", "tool_calls"]);
});
