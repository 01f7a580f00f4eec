import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { firstCallOnly } from "../../../src/inference/first-call-only.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../dialects/recorded-events.ts";
import { readEvents } from "./read-events.ts";

const isSecond = (event: GenerationEvent): boolean => "index" in event && event.index === 1;
const soFar = {
  usage: { promptTokens: 7, completionTokens: 20, cachedTokens: 2, reasoningTokens: 3 },
  timings: { promptMs: 5, completionMs: 40 },
};

test("the turn ends where a second call begins", () => {
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

test("one call, or none, passes as it is", () => {
  expect(readEvents(firstCallOnly(), PLAIN_TEXT)).toEqual(PLAIN_TEXT);
  const single = THINKING_AND_TOOLS.filter((event) => !isSecond(event));
  expect(readEvents(firstCallOnly(), single)).toEqual(single);
});
