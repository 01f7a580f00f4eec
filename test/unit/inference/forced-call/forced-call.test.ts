import { describe, expect, test } from "vitest";
import type { FinishReason, GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { readForcedCall } from "../../../../src/inference/tool-calls/forced-calls.ts";
import { DONE } from "../../../support/fake-engine.ts";
import { randomPieces } from "../random-pieces.ts";
import { readEvents } from "../read-events.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

function read(pieces: readonly string[], reason: FinishReason = "stop") {
  const seen = { text: "", name: "", arguments: "", calls: 0, reason: "" };
  function* stream(): Generator<GenerationEvent> {
    yield { type: "start" };
    for (const text of pieces) yield { type: "text-delta", text };
    yield { ...DONE, reason };
  }
  for (const event of readEvents(
    readForcedCall(() => "call_1"),
    stream(),
  )) {
    if (event.type === "text-delta") seen.text += event.text;
    else if (event.type === "tool-call-start") {
      seen.calls += 1;
      seen.name = event.name;
    } else if (event.type === "tool-call-delta") seen.arguments += event.arguments;
    else if (event.type === "done") seen.reason = event.reason;
  }
  return seen;
}

describe("readForcedCall", () => {
  test.for<[string, string, string]>([
    ['{"name": "now", "arguments": {}}', "now", "{}"],
    ['{"name":"add","arguments":{"a":{"b":[1]}}}', "add", '{"a":{"b":[1]}}'],
    [
      ' {\n"name" : "say \\"hi\\"",\n\n"arguments" :\n {"text": "}} } "} \n}\n ',
      'say "hi"',
      '{"text": "}} } "}',
    ],
  ])("reads %j", ([whole, name, args]) => {
    const expected = { text: "", name, arguments: args, calls: 1, reason: "tool_calls" };
    expect(read([whole])).toEqual(expected);
    const random = randomNumbers(17);
    for (let round = 0; round < 200; round += 1) {
      const pieces = randomPieces(whole, random);
      expect({ pieces, ...read(pieces) }).toEqual({ pieces, ...expected });
    }
  });

  test.for<[string, string, object]>([
    ["in its arguments", '{"name":"add","arguments":{"a":{"b":1}', { arguments: '{"a":{"b":1}', calls: 1 }],
    ["before its last brace", '{"name":"add","arguments":{"a":1}', { arguments: '{"a":1}', calls: 1 }],
    ["before its arguments", '{"name":"add","argu', { text: '{"name":"add","argu', calls: 0 }],
  ])("stays text or an incomplete call when truncated %s", ([, text, expected]) => {
    expect(read([text], "length")).toMatchObject({ ...expected, reason: "length" });
  });
});
