import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../../src/engine/protocol/generation.ts";
import { splitToolCalls } from "../../../../src/inference/tool-calls/tagged-call-parser.ts";
import { DONE, eventsOf } from "../../../support/fake-engine.ts";
import { randomPieces } from "../random-pieces.ts";
import { readEvents } from "../read-events.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

const FORMAT = {
  style: "json",
  callStart: "<call>",
  callEnd: "</call>",
  resultStart: "<result>",
  resultEnd: "</result>",
};

interface Seen {
  text: string;
  emptyPieces: number;
  ids: [index: number, id: string][];
  calls: { name: string; arguments: string }[];
  reason: string;
}

function split(
  pieces: readonly string[],
  options: { format?: typeof FORMAT; parallel?: boolean } = {},
): Seen {
  const seen: Seen = { text: "", emptyPieces: 0, ids: [], calls: [], reason: "" };
  let ids = 0;
  const reader = splitToolCalls(options.format ?? FORMAT, {
    parallel: options.parallel ?? true,
    makeId: () => `call_${(ids += 1)}`,
  });
  for (const event of readEvents(reader, eventsOf(...pieces))) {
    if (event.type === "text-delta") {
      seen.text += event.text;
      seen.emptyPieces += event.text === "" ? 1 : 0;
    } else if (event.type === "tool-call-start") {
      seen.ids.push([event.index, event.id]);
      seen.calls.push({ name: event.name, arguments: "" });
    } else if (event.type === "tool-call-delta") seen.calls[event.index]!.arguments += event.arguments;
    else if (event.type === "done") seen.reason = event.reason;
  }
  return seen;
}

const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });

describe("splitToolCalls", () => {
  test.for<[string, string, Seen["calls"]]>([
    ["Just words.", "Just words.", []],
    ["  words \n", "  words \n", []],
    ['<call>{"name":"add","arguments":{"a":1}}</call>', "", [call("add", { a: 1 })]],
    ['Let me see.\n\n<call>\n{"name": "now"}\n</call>\n', "Let me see.", [call("now", {})]],
    [
      '<call>{"name":"a","parameters":{}}</call>\n<call>{"name":"b","arguments":{"x":"</cal"}}</call> then',
      "then",
      [call("a", {}), call("b", { x: "</cal" })],
    ],
    ['<call>[{"name":"a"},{"name":"b"}]</call>', "", [call("a", {}), call("b", {})]],
    ['<call>{"name":"a","arguments":"{\\"x\\": 1}"}</call>', "", [{ name: "a", arguments: '{"x": 1}' }]],
    ["<call>no json</call>", "<call>no json</call>", []],
    ['<call>{"arguments":{}}</call> x', '<call>{"arguments":{}}</call> x', []],
    ["a <cal b", "a <cal b", []],
    ['<call>{"name":"open"}', "", [call("open", {})]],
    ['<call>{"name":"cut', '<call>{"name":"cut', []],
  ])("splits %j", ([whole, text, calls]) => {
    const expected: Seen = {
      text,
      emptyPieces: 0,
      ids: calls.map((_, index) => [index, `call_${index + 1}`]),
      calls,
      reason: calls.length > 0 ? "tool_calls" : "stop",
    };
    expect(split([whole])).toEqual(expected);
    const random = randomNumbers(11);
    for (let round = 0; round < 200; round += 1) {
      const pieces = randomPieces(whole, random);
      expect({ pieces, ...split(pieces) }).toEqual({ pieces, ...expected });
    }
  });

  test("a call without an end tag extends to the end of the answer", () => {
    const format = { ...FORMAT, callStart: "[TOOL_CALLS]", callEnd: "" };
    expect(split(["ok [TOOL", '_CALLS][{"name":"a","arg', 'uments":{}}]'], { format })).toMatchObject({
      text: "ok",
      calls: [call("a", {})],
      reason: "tool_calls",
    });
  });

  test("only the first call is emitted if calls must not be parallel", () => {
    const whole = '<call>{"name":"a"}</call><call>{"name":"b"}</call>';
    expect(split([whole], { parallel: false }).calls).toEqual([call("a", {})]);
  });

  test("an answer that stopped at the end tag has its call or text, and no stop sequence", () => {
    const stopped = { ...DONE, reason: "stop" as const, stopSequence: FORMAT.callEnd };
    const read = (text: string): GenerationEvent[] =>
      readEvents(splitToolCalls(FORMAT, { parallel: false }), [{ type: "text-delta", text }, stopped]);
    const called = read('<call>{"name":"a"}');
    expect(called).toMatchObject([{ name: "a" }, { arguments: "{}" }, { reason: "tool_calls" }]);
    expect(called.at(-1)).not.toHaveProperty("stopSequence");
    const plain = read("<call>no json");
    expect(plain).toMatchObject([{ text: "<call>no json</call>" }, { reason: "stop" }]);
    expect(plain.at(-1)).not.toHaveProperty("stopSequence");
  });

  test("a truncated answer keeps the reason length", () => {
    const cut: GenerationEvent[] = [
      { type: "text-delta", text: '<call>{"name":"a"}</call>' },
      { ...DONE, reason: "length" },
    ];
    const events = readEvents(splitToolCalls(FORMAT, { parallel: true }), cut);
    expect(events.at(-1)).toMatchObject({ type: "done", reason: "length" });
  });
});
