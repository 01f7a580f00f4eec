import { describe, expect, test } from "vitest";
import { readOfferedCall } from "../../../../src/inference/tool-calls/forced-calls.ts";
import { eventsOf } from "../../../support/fake-engine.ts";
import { randomPieces } from "../random-pieces.ts";
import { readEvents } from "../read-events.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

function read(pieces: readonly string[], names: readonly string[] = ["now", "find"]) {
  const all = readEvents(
    readOfferedCall(names, () => "call_1"),
    eventsOf(...pieces),
  );
  const join = (type: "text-delta" | "tool-call-delta"): string =>
    all.map((event) => (event.type !== type ? "" : "text" in event ? event.text : event.arguments)).join("");
  return {
    first: all[0]?.type,
    text: join("text-delta"),
    arguments: join("tool-call-delta"),
    names: all.flatMap((event) => (event.type === "tool-call-start" ? [event.name] : [])),
    reason: all.at(-1)?.type === "done" && Object(all.at(-1))["reason"],
    pieces: all.length,
  };
}

describe("an answer that may be a tool call", () => {
  const random = randomNumbers(3);

  test.each([
    ['{"name": "find", "arguments": {"city": "Rome"}}', "find", '{"city": "Rome"}'],
    ['{"name":"now","arguments":{}}', "now", "{}"],
    [' {\n "name" : "now", "arguments" : {"name": "x"} }', "now", '{"name": "x"}'],
  ])("is a call if it has the form of one: %s", (written, name, args) => {
    for (let round = 0; round < 20; round += 1) {
      const outcome = read(randomPieces(written, random));
      expect(outcome).toMatchObject({ names: [name], arguments: args, text: "", reason: "tool_calls" });
    }
  });

  test.each([
    '{"name": "Anna", "age": 31}',
    '{"name": "now", "age": 31}',
    '{"name": "finder", "arguments": {}}',
    '{"sum": 7}',
    "[]",
    '{"name": "no',
    "",
  ])("is text if it has another form: %s", (written) => {
    for (let round = 0; round < 20; round += 1) {
      const outcome = read(randomPieces(written, random));
      expect(outcome).toMatchObject({ names: [], text: written, reason: "stop", first: "start" });
    }
  });

  test("is streamed as soon as it is not a call", () => {
    const pieces = ['{"su', 'm": ', "7", "}"];
    expect(read(pieces).pieces).toBe(pieces.length + 2);
  });
});
