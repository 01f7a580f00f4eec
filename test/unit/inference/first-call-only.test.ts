import { expect, test } from "vitest";
import { firstCallOnly } from "../../../src/inference/first-call-only.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../dialects/recorded-events.ts";

async function collect(events: readonly (typeof THINKING_AND_TOOLS)[number][]) {
  const collected = [];
  for await (const event of firstCallOnly(
    (async function* () {
      yield* events;
    })(),
  ))
    collected.push(event);
  return collected;
}

test("of several calls the first one is left, and everything else", async () => {
  const second = THINKING_AND_TOOLS.filter((event) => "index" in event && event.index === 1);
  expect(second.length).toBeGreaterThan(1);
  const rest = THINKING_AND_TOOLS.filter((event) => !second.includes(event));
  expect(await collect(THINKING_AND_TOOLS)).toEqual(rest);
  expect(await collect(PLAIN_TEXT)).toEqual(PLAIN_TEXT);
});
