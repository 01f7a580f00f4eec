import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { dropReasoningEcho } from "../../../src/inference/drop-reasoning-echo.ts";
import { DONE } from "../../support/fake-engine.ts";
import { readEvents } from "./read-events.ts";

const text = (piece: string): GenerationEvent => ({ type: "text-delta", text: piece });
const reasoning = (piece: string): GenerationEvent => ({ type: "reasoning-delta", text: piece });
const CALL: GenerationEvent = { type: "tool-call-start", index: 0, id: "1", name: "look" };

function read(...events: GenerationEvent[]): GenerationEvent[] {
  return readEvents(dropReasoningEcho(["<|calls|>", "<|call|>"]), events);
}

test("what comes again as reasoning is not text", () => {
  expect(read(reasoning("If "), text("<|"), text("ca"), reasoning("<|cat"), reasoning("s"), DONE)).toEqual([
    reasoning("If "),
    reasoning("<|cat"),
    reasoning("s"),
    DONE,
  ]);
});

test("text behind reasoning is text, even if it begins like a tag", () => {
  const events = [reasoning("Hm."), text("<|"), text("b|> "), text("<|"), DONE];
  expect(read(...events)).toEqual(events);
});

test.each([DONE, CALL])("text that is only the beginning of a tag is not lost in front of %j", (end) => {
  const events = [reasoning("Hm."), text("<|"), end];
  expect(read(...events)).toEqual(events);
});

test("text without reasoning is passed on at once", () => {
  expect(read(text("<|"))).toEqual([text("<|")]);
});
