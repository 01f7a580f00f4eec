import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationEvent, GenerationRequest } from "../../src/engine/protocol/generation.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  temporaryFolder,
  textOf,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const forTokens = (prompt: string, maxTokens: number): GenerationRequest =>
  promptRequest(prompt, { maxTokens, cachePrompt: false, sampling: { temperature: 0, ignoreEos: true } });

const BATCH_SIZE = 64;

describe("an engine with the shipped model", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(SHIPPED_MODEL, { contextSize: 2048, batchSize: BATCH_SIZE }));
    await collect(generated(engine, forTokens("warm up", 50), NEVER));
  });
  afterAll(() => engine.close());

  test("delivers tokens of concurrent streams as they are generated", async () => {
    let others = 0;
    const long = ["a", "b", "c"].map(async (prompt) => {
      for await (const { type } of generated(engine, forTokens(prompt, 400), NEVER))
        if (type === "text-delta") others += 1;
    });
    const short: GenerationEvent[] = [];
    let before: number | undefined;
    for await (const event of generated(engine, forTokens("d", 40), NEVER)) {
      short.push(event);
      // Regardless of its time in the queue.
      if (event.type === "text-delta") before ??= others;
    }
    const beside = others - before!;
    // All advance together: while the short one came, the others went about as far. Were each delivered only when
    // its turn comes, or at the end, they would be at four times as much, or at nothing.
    expect(doneOf(short).usage.completionTokens).toBe(40);
    expect(beside).toBeGreaterThan(3 * 20);
    expect(beside).toBeLessThan(3 * 80);
    await Promise.all(long);
  });

  test("cancels during prefill", async () => {
    // A test that waits for the processor sees more steps than the engine needed; one that ignores the cancel never
    // sees few. So the best of its tries counts.
    let best = Infinity;
    for (let attempt = 0; attempt < 20 && best >= 1 / 2; attempt += 1)
      best = Math.min(best, await shareReadAfterCancel());
    expect(best).toBeLessThan(1 / 2);
  });

  /** Share of a cancelled prompt's rest that was computed before another client got an answer. */
  async function shareReadAfterCancel(): Promise<number> {
    // A concurrent stream gets a token per step, which counts the steps.
    let steps = 0;
    const over = new AbortController();
    const reason = new Error("over");
    const beside = (async () => {
      for await (const { type } of generated(engine, forTokens("a", 400), over.signal))
        if (type === "text-delta") steps += 1;
    })().catch((error: unknown) => error);
    const client = new AbortController();
    const generation = generated(engine, forTokens("word ".repeat(800), 1), client.signal);
    let event = await generation.next();
    while (event.value?.type !== "prompt-progress" || event.value.processed < 100)
      event = await generation.next();
    const stepsLeft = (event.value.total - event.value.processed) / BATCH_SIZE;
    const begun = steps;
    client.abort(reason);
    const left = await generation.next().catch((error: unknown) => error);
    // Other slots wait for the current step at most.
    await collect(generated(engine, forTokens("b", 1), NEVER));
    const share = (steps - begun) / stepsLeft;
    over.abort(reason);
    // Streams that had already ended are ignored.
    return left === reason && (await beside) === reason ? share : Infinity;
  }
});

const letters = (count: number): string =>
  Array.from({ length: count }, (_, at) => "abcdefgh"[(at * (at + 3)) % 8]).join("");

describe("an engine whose steps take long", () => {
  const folder = temporaryFolder();
  /** Model with 20 million multiplications per token. */
  const shape = { embedding: 512, feedForward: 6144, blocks: 3, heads: 8, kvHeads: 8 };
  const start = (): Promise<Engine> =>
    startEngine(
      engineSpec(writeModel(folder, "wide", tinyLlama({ ...shape, weights: "Q8_0", context: 512 })), {
        contextSize: 512,
        batchSize: 512,
        slots: 1,
      }),
    );
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  const request = promptRequest(letters(300), {
    maxTokens: 12,
    sampling: { temperature: 0, ignoreEos: true },
  });

  test("aborts a step when its request is cancelled, and keeps the prompt computed before", async () => {
    let read: number | undefined;
    let cached: number | undefined;
    let left: unknown;
    const enough = new Error("enough");
    // On a busy machine the test cancels too late, so it retries.
    for (let attempt = 0; attempt < 20 && (read === undefined || cached !== read); attempt += 1) {
      const engine = await start();
      const client = new AbortController();
      const generation = generated(engine, request, client.signal);
      let event = await generation.next();
      while (event.value?.type !== "prompt-progress" || event.value.processed < 100)
        event = await generation.next();
      read = event.value.processed;
      client.abort(enough);
      left = await generation.next().catch((error: unknown) => error);
      const again = await collect(generated(engine, request, NEVER));
      const undisturbed = await collect(generated(engine, { ...request, cachePrompt: false }, NEVER));
      await engine.close();
      cached = doneOf(again).usage.cachedTokens;
      expect(textOf(again)).toBe(textOf(undisturbed));
      expect(textOf(again)).not.toBe("");
    }
    // Steps double in size, so the current one is larger than all before together.
    expect(cached).toBe(read);
    expect(left).toBe(enough);
  });
});
