import { expect, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { collectAnswer, countTokens } from "../../../src/inference/collect-answer.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { WorkFigures, WorkFollower } from "../../../src/inference/request-accounting.ts";
import { collectChoices, generateChoices } from "../../../src/inference/generate-choices.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { endless, never, REQUEST } from "./inference-setup.ts";

interface Told {
  figures: WorkFigures;
  ends: number;
  notes: number;
  readonly isFurther: boolean;
}

/** An inference and what its followers were told: the figures of each piece of work, and how often it ended. */
function setup() {
  const engine = new FakeEngine({ slots: 1 });
  const metrics = new FakeMetrics();
  const told: Told[] = [];
  const follow = (isFurther = false): WorkFollower => {
    const work: Told = { figures: {}, ends: 0, notes: 0, isFurther };
    told.push(work);
    return {
      note: (figures) => {
        work.notes += 1;
        work.figures = { ...work.figures, ...figures };
      },
      end: () => void (work.ends += 1),
      further: () => follow(true),
    };
  };
  const inference = createInference({
    models: new FakeModels([fakeModel()], engine),
    metrics,
    config: configSchema.parse({}),
    followWork: () => follow(),
  });
  return { engine, metrics, inference, told };
}

test("a generation tells its model, its tokens, its first token and its speed, a few times only", async () => {
  const { inference, told, metrics } = setup();
  await collectAnswer((await inference.generate(REQUEST, never)).events);
  expect(told).toEqual([
    {
      figures: {
        endpoint: "generate",
        model: "fake",
        loadedMs: expect.any(Number),
        admittedMs: expect.any(Number),
        finishReason: "stop",
        promptTokens: 7,
        cachedTokens: expect.any(Number),
        completionTokens: 3,
        firstTokenMs: expect.any(Number),
        tokensPerSecond: 100,
      },
      ends: 1,
      notes: expect.any(Number),
      isFurther: false,
    },
  ]);
  expect(told[0]!.notes).toBeLessThan(8);
  expect(metrics.firstTokens).toEqual([told[0]!.figures.firstTokenMs! / 1000]);
  expect(metrics.intervals).toHaveLength(1);
  expect(metrics.cached).toBe(told[0]!.figures.cachedTokens);
});

test("a generation that fails tells the code of its error, before and after its first event", async () => {
  const { inference, engine, told } = setup();
  await expect(inference.generate({ ...REQUEST, model: "other" }, never)).rejects.toThrow("other");
  engine.script = async function* () {
    yield { type: "start" };
  };
  await expect(collectAnswer((await inference.generate(REQUEST, never)).events)).rejects.toThrow("complete");
  expect(told).toMatchObject([
    { figures: { failure: "model_not_found" }, ends: 1 },
    { figures: { model: "fake", failure: "inference_failed" }, ends: 1 },
  ]);
});

test("a client that leaves is told apart from a failure, and a reader who has enough from both", async () => {
  const { inference, engine, told } = setup();
  engine.script = endless;
  const client = new AbortController();
  const { events } = await inference.generate(REQUEST, client.signal);
  client.abort();
  await expect(collectAnswer(events)).rejects.toThrow("abort");
  engine.script = async function* (request, signal) {
    yield { type: "prompt-progress", processed: 5, total: 5 };
    yield* endless(request, signal);
  };
  await countTokens(inference, REQUEST, never);
  expect(told).toEqual([
    {
      figures: expect.objectContaining({ model: "fake", isAborted: true }),
      ends: 1,
      notes: 4,
      isFurther: false,
    },
    {
      figures: expect.objectContaining({ model: "fake", promptTokens: 5 }),
      ends: 1,
      notes: 4,
      isFurther: false,
    },
  ]);
});

test("all choices of an answer belong to one request", async () => {
  const { inference, told } = setup();
  const { events } = await generateChoices(inference, [REQUEST, REQUEST, REQUEST], 1, never);
  await collectChoices(events, 3);
  expect(told.map(({ isFurther, ends }) => [isFurther, ends])).toEqual([
    [false, 1],
    [true, 1],
    [true, 1],
  ]);
});

test("embeddings tell their model and the tokens of their texts, or why they failed", async () => {
  const { inference, told, engine } = setup();
  const { totalTokens } = await inference.embed({ input: ["a", "bb"] }, never);
  engine.onText = async () => await Promise.reject(new ServiceError("engine_crashed", "It ended."));
  await expect(inference.embed({ input: ["a"] }, never)).rejects.toThrow("It ended.");
  expect(told).toMatchObject([
    { figures: { model: "fake", promptTokens: totalTokens }, ends: 1 },
    { figures: { model: "fake", failure: "engine_crashed" }, ends: 1 },
  ]);
});
