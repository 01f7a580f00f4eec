import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationRequest } from "../../src/engine/protocol/generation.ts";
import {
  collect,
  doneOf,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  startStockEngine,
} from "../support/engine-fixture.ts";

const forTokens = (prompt: string, maxTokens: number): GenerationRequest =>
  promptRequest(prompt, { maxTokens, cachePrompt: false, sampling: { temperature: 0, ignoreEos: true } });

describe("an engine with the shipped model", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(SHIPPED_MODEL, { contextSize: 2048 }));
    await collect(engine.generate(forTokens("warm up", 50), NEVER));
  });
  afterAll(() => engine.close());

  test("delivers streams that run together as they are made", async () => {
    const long = ["a", "b", "c"].map((prompt) => collect(engine.generate(forTokens(prompt, 200), NEVER)));
    const begun = performance.now();
    const { timings } = doneOf(await collect(engine.generate(forTokens("d", 40), NEVER)));
    const delivered = performance.now() - begun;
    // What the engine itself counts; delivery in turn would take about four times as long.
    expect(delivered).toBeLessThan(2 * (timings.promptMs + timings.completionMs) + 100);
    await Promise.all(long);
  });

  test("obeys a cancel within a second, in the middle of a prompt", async () => {
    const controller = new AbortController();
    const generation = engine.generate(forTokens("word ".repeat(800), 1), controller.signal);
    let event = await generation.next();
    while (event.value?.type !== "prompt-progress" || event.value.processed === 0)
      event = await generation.next();
    const begun = performance.now();
    controller.abort(new Error("enough"));
    await expect(generation.next()).rejects.toThrow("enough");
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

test("the stock engine gives the same text", async () => {
  const spec = engineSpec(SHIPPED_MODEL);
  const [ours, stock] = [await startEngine(spec), await startStockEngine(spec)];
  const request = promptRequest("The same", {
    maxTokens: 20,
    format: { type: "grammar", grammar: 'root ::= "same text"' },
  });
  expect(await generateText(ours, request)).toBe("same text");
  expect(await generateText(stock, request)).toBe("same text");
  await Promise.all([ours.close(), stock.close()]);
});
