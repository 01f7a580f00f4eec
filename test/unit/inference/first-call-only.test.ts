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
  let clock = 0;
  for await (const event of firstCallOnly(source(), () => (clock += 5))) collected.push(event);
  return collected;
}

const isSecond = (event: GenerationEvent): boolean => "index" in event && event.index === 1;

test("the turn ends where a second call begins, and the generation is left there", async () => {
  const asked: GenerationEvent[] = [{ type: "prompt-progress", processed: 7, total: 7 }];
  const begun = THINKING_AND_TOOLS.slice(0, THINKING_AND_TOOLS.findIndex(isSecond));
  const behind = THINKING_AND_TOOLS.slice(begun.length + 1);
  expect(behind.length).toBeGreaterThan(1);
  let leftBefore = 0;
  const collected = await collect([...asked, ...THINKING_AND_TOOLS], () => (leftBefore += 1));
  expect(leftBefore).toBe(1);
  expect(collected.slice(0, -1)).toEqual([...asked, ...begun]);
  const pieces = begun.filter(({ type }) => type.includes("-delta") || type.includes("-start"));
  expect(collected.at(-1)).toMatchObject({
    type: "done",
    reason: "tool_calls",
    usage: {
      promptTokens: expect.any(Number),
      completionTokens: pieces.length,
      reasoningTokens: pieces.filter(({ type }) => type === "reasoning-delta").length,
    },
    timings: { promptMs: expect.any(Number), completionMs: expect.any(Number) },
  });
});

test("one call, or none, passes as it is", async () => {
  expect(await collect(PLAIN_TEXT)).toEqual(PLAIN_TEXT);
  const single = THINKING_AND_TOOLS.filter((event) => !isSecond(event));
  expect(await collect(single)).toEqual(single);
});
