import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { firstCallOnly } from "../../../src/inference/first-call-only.ts";
import { PLAIN_TEXT, THINKING_AND_TOOLS } from "../dialects/recorded-events.ts";

async function collect(events: readonly GenerationEvent[], left: () => void = () => undefined) {
  const collected: GenerationEvent[] = [];
  async function* source(): AsyncGenerator<GenerationEvent> {
    try {
      yield* events;
    } finally {
      left();
    }
  }
  for await (const event of firstCallOnly(source())) collected.push(event);
  return collected;
}

const isSecond = (event: GenerationEvent): boolean => "index" in event && event.index === 1;
const soFar = {
  usage: { promptTokens: 7, completionTokens: 20, cachedTokens: 2, reasoningTokens: 3 },
  timings: { promptMs: 5, completionMs: 40 },
};

test("the turn ends where a second call begins, and the generation is left there", async () => {
  const at = THINKING_AND_TOOLS.findIndex(isSecond);
  const begun = THINKING_AND_TOOLS.slice(0, at);
  expect(THINKING_AND_TOOLS.length).toBeGreaterThan(at + 2);
  let times = 0;
  const events = THINKING_AND_TOOLS.map((event) =>
    isSecond(event) && event.type === "tool-call-start" ? { ...event, soFar } : event,
  );
  expect(await collect(events, () => (times += 1))).toEqual([
    ...begun,
    { type: "done", reason: "tool_calls", ...soFar },
  ]);
  expect(times).toBe(1);
});

test("one call, or none, passes as it is", async () => {
  expect(await collect(PLAIN_TEXT)).toEqual(PLAIN_TEXT);
  const single = THINKING_AND_TOOLS.filter((event) => !isSecond(event));
  expect(await collect(single)).toEqual(single);
});
