import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chooseBatchSize } from "../../src/engine/choose-engine-settings.ts";
import type { Engine } from "../../src/engine/engine.ts";
import {
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyBert, tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Tolerance between batched and single texts, whose sums are rounded differently. */
function distance(vector: readonly number[], other: readonly number[] | undefined): number {
  return Math.hypot(...vector.map((value, at) => value - (other?.[at] ?? 0)));
}

const CONTEXT = 128;
const question = { parameters: 10_000, contextSize: CONTEXT, slots: 4, threads: 1, bytesPerStepToken: 1000 };

describe("an embedding model", () => {
  let engine: Engine;
  beforeAll(async () => {
    const file = writeModel(folder, "bert", tinyBert({ context: CONTEXT }));
    const batchSize = chooseBatchSize({ ...question, purpose: "embed" });
    engine = await startEngine(engineSpec(file, { purpose: "embed", contextSize: CONTEXT, batchSize }));
  });
  afterAll(() => engine.close());

  test("returns normalized vectors that depend on the text only", async () => {
    const [hello, again, world] = [
      await engine.embed("hello world", NEVER),
      await engine.embed("hello world", NEVER),
      await engine.embed("the cat", NEVER),
    ];
    expect(hello.vector).toHaveLength(engine.info.embeddingSize);
    expect(Math.hypot(...hello.vector)).toBeCloseTo(1, 4);
    expect(again.vector).toEqual(hello.vector);
    expect(world.vector).not.toEqual(hello.vector);
    expect(hello.tokens).toBe(4); // [CLS] hello world [SEP]
  });

  test("embeds concurrent texts like single ones", async () => {
    const texts = ["hello", "world", "the cat", "a dog"];
    const together = await Promise.all(texts.map((text) => engine.embed(text, NEVER)));
    for (const [index, text] of texts.entries()) {
      const alone = await engine.embed(text, NEVER);
      expect(distance(alone.vector, together[index]?.vector)).toBeLessThan(1e-3);
    }
  });

  test("accepts a text as long as its context and refuses a longer one with both numbers", async () => {
    expect((await engine.embed("hello ".repeat(CONTEXT - 2), NEVER)).tokens).toBe(CONTEXT);
    await expect(engine.embed("hello ".repeat(CONTEXT + 100), NEVER)).rejects.toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringMatching(/230 .*128|230 .*256/),
    });
    expect(engine.alive).toBe(true);
  });

  test("can neither generate nor rerank", async () => {
    await expect(collect(generated(engine, promptRequest("Hi"), NEVER))).rejects.toMatchObject({
      code: "unsupported_feature",
    });
    await expect(engine.rerank("a", "b", NEVER)).rejects.toMatchObject({ code: "unsupported_feature" });
  });
});

test("a reranker gives equal pairs equal scores", async () => {
  const file = writeModel(folder, "reranker", tinyBert({ context: CONTEXT, rerank: true }));
  const engine = await startEngine(
    engineSpec(file, { purpose: "rerank", contextSize: CONTEXT, batchSize: CONTEXT }),
  );
  const cat = await engine.rerank("hello", "the cat", NEVER);
  expect(Number.isFinite(cat.score)).toBe(true);
  expect(cat.tokens).toBeGreaterThan(3);
  expect((await engine.rerank("hello", "the cat", NEVER)).score).toBe(cat.score);
  expect((await engine.rerank("hello", "world", NEVER)).score).not.toBe(cat.score);
  await expect(engine.embed("hello", NEVER)).rejects.toMatchObject({ code: "unsupported_feature" });
  await engine.close();
});

test("a generative model embeds during a generation and refuses texts longer than a batch", async () => {
  const engine = await startEngine(engineSpec(writeModel(folder, "llama", tinyLlama())));
  const alone = await generateText(engine, promptRequest("once upon", { maxTokens: 40 }));
  const [text, first, second] = await Promise.all([
    generateText(engine, promptRequest("once upon", { maxTokens: 40 })),
    engine.embed("the time", NEVER),
    engine.embed("the time", NEVER),
  ]);
  expect(text).toBe(alone);
  expect(first.vector).toHaveLength(64);
  expect(distance(second.vector, first.vector)).toBeLessThan(1e-3);
  await expect(engine.embed("hello ".repeat(50), NEVER)).rejects.toMatchObject({
    code: "context_length_exceeded",
  });
  await engine.close();
});

test.each([
  ["that the slots do not share evenly", { batchSize: 5, slots: 4 }],
  ["of one token", { batchSize: 1, slots: 1 }],
])("a batch size %s is rounded up, because llama.cpp would abort", async (_, settings) => {
  const file = writeModel(folder, "uneven", tinyLlama());
  const engine = await startEngine(engineSpec(file, settings));
  expect(await generateText(engine, promptRequest("once upon a time"))).toBeDefined();
  expect((await engine.embed("the", NEVER)).vector).toHaveLength(64);
  await engine.close();
});
