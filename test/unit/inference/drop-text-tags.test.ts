import { expect, test } from "vitest";
import { dropTextTags } from "../../../src/inference/drop-text-tags.ts";
import { eventsOf } from "../../support/fake-engine.ts";
import { randomPieces } from "./random-pieces.ts";
import { readEvents } from "./read-events.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

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
])("the text of %j is without its tags", (whole, expected) => {
  const random = randomNumbers(5);
  for (let round = 0; round < 50; round += 1) expect(textOf(randomPieces(whole, random))).toBe(expected);
});
