import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { EngineSlots } from "../../src/engine/engine-slots.ts";
import { collectAnswer } from "../../src/inference/collect-answer.ts";
import { createInference } from "../../src/inference/create-inference.ts";
import type { Inference, InferenceRequest } from "../../src/inference/inference.ts";
import {
  collect,
  doneOf,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyLlama, tokenId } from "../support/tiny-models.ts";
import { fakeModel } from "../support/fake-models.ts";
import { FakeMetrics } from "../support/fake-metrics.ts";
import { generated } from "../support/generated.ts";

const CONTEXT = 256;
const SLOTS = 4;

const folder = temporaryFolder();
const MODEL = writeModel(folder, "tiny", tinyLlama());
/** Bias for "A": random tokens of the model are rarely text. */
const LETTER = tokenId(tinyLlama(), "<0x41>");
afterAll(() => fs.rmSync(folder, { recursive: true }));

function inferenceOn(engine: Engine): Inference {
  const model = fakeModel();
  const models = { acquire: async () => ({ model, engine, [Symbol.dispose]: () => {} }) };
  return createInference({ models, metrics: new FakeMetrics(), config: configSchema.parse({}) });
}

/** Request without a token limit. */
function unlimited(index: number): InferenceRequest {
  return {
    endpoint: "generate",
    input: { kind: "prompt", prompt: `Once upon a time ${index}` },
    sampling: { temperature: 0, ignoreEos: true, logitBias: [{ token: LETTER, bias: 100 }] },
    format: { type: "text" },
    defaults: { sampling: {} },
  };
}

describe("slots with a context each", () => {
  let engine: Engine;
  let inference: Inference;

  beforeAll(async () => {
    const spec = { contextSize: CONTEXT, slots: SLOTS, sharedContext: false };
    engine = await startEngine(engineSpec(MODEL, spec));
    inference = inferenceOn(engine);
  });
  afterAll(async () => await engine.close());

  test("honor the slot that a request names, without a prompt cache", async () => {
    const slots = new EngineSlots(engine);
    expect(await slots.reserve(2, NEVER)).toBe(false);
    const askedOf = async (slot?: number): Promise<number | undefined> => {
      const request = promptRequest("Once", { maxTokens: 1, details: true, slot });
      return doneOf(await collect(generated(engine, request, NEVER))).details?.slot;
    };
    const others = await Promise.all(Array.from({ length: SLOTS - 1 }, () => askedOf()));
    expect(new Set(others)).toEqual(new Set([0, 1, 3]));
    expect(await askedOf(2)).toBe(2);
    await slots.release(2, NEVER);
  });

  test("report the total context and that of one request", () => {
    expect(engine.info).toMatchObject({ contextSize: CONTEXT, contextTokens: SLOTS * CONTEXT });
  });

  test("run concurrent requests without a limit, each of which fills its context", async () => {
    // All streams begin before one ends.
    const streams = await Promise.all(
      Array.from({ length: SLOTS }, async (_, index) => await inference.generate(unlimited(index), NEVER)),
    );
    expect(inference.activeRequests).toBe(SLOTS);
    const answers = await Promise.all(streams.map(async ({ events }) => await collectAnswer(events)));
    for (const { usage, reason } of answers) {
      expect(reason).toBe("length");
      expect(usage.promptTokens + usage.completionTokens).toBeGreaterThanOrEqual(CONTEXT - 1);
    }
  });

  test("refuse a prompt longer than one of them, with its size", async () => {
    const prompt = "word ".repeat(2 * CONTEXT);
    await expect(collect(generated(engine, promptRequest(prompt), NEVER))).rejects.toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringContaining(` ${CONTEXT} tokens`),
    });
  });

  test("reuse a cached prompt", async () => {
    const request = promptRequest("The cat that is in the cache sat on the mat and did not move.");
    await collect(generated(engine, request, NEVER));
    const { usage } = doneOf(await collect(generated(engine, request, NEVER)));
    expect(usage.cachedTokens).toBeGreaterThanOrEqual(usage.promptTokens - 1);
  });

  test("embed concurrent texts like single ones", async () => {
    const texts = [
      "Two words.",
      "A text that is a good deal longer than the others are.",
      "One",
      "The moon rises.",
    ];
    const alone: number[][] = [];
    for (const text of texts) alone.push((await engine.embed(text, NEVER)).vector);
    const together = await Promise.all(texts.map(async (text) => await engine.embed(text, NEVER)));
    for (const [index, { vector }] of together.entries()) {
      const similarity = vector.reduce((sum, value, at) => sum + value * alone[index]![at]!, 0);
      expect(similarity).toBeCloseTo(1, 3);
    }
  });

  test("are free again after a cancel", async () => {
    const cancelled = async (index: number): Promise<unknown> => {
      const client = new AbortController();
      const { events } = await inference.generate(unlimited(index), client.signal);
      // Immediately, before the answer can end.
      client.abort(new Error("gone"));
      return await collectAnswer(events);
    };
    const outcomes = await Promise.allSettled(Array.from({ length: SLOTS }, (_, index) => cancelled(index)));
    expect(outcomes).toMatchObject(outcomes.map(() => ({ status: "rejected", reason: { message: "gone" } })));
    const { reason } = await collectAnswer((await inference.generate(unlimited(9), NEVER)).events);
    expect(reason).toBe("length");
  });
});

test("a separate context changes no answer, alone or during other requests", async () => {
  const texts: string[][] = [];
  const prompts = ["first of all", "a second one, longer than the others", "third", "and the last"];
  for (const sharedContext of [true, false]) {
    const engine = await startEngine(
      engineSpec(MODEL, { contextSize: CONTEXT, slots: SLOTS, sharedContext }),
    );
    const generate = async (prompt: string): Promise<string> =>
      await generateText(engine, promptRequest(prompt, { maxTokens: 40 }));
    const alone: string[] = [];
    for (const prompt of prompts) alone.push(await generate(prompt));
    texts.push(alone, await Promise.all(prompts.map(generate)));
    await engine.close();
  }
  expect(texts).toEqual(Array(4).fill(texts[0]));
});
