import { expect, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { collectAnswer, countTokens } from "../../../src/inference/collect-answer.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { WorkStats, WorkObserver } from "../../../src/inference/request-accounting.ts";
import { collectChoices, generateChoices } from "../../../src/inference/generate-choices.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { endless, never, REQUEST } from "./inference-setup.ts";

interface ObservedWork {
  stats: WorkStats;
  ends: number;
  reports: number;
  readonly isFork: boolean;
}

/** Creates an inference service with an observer that records the statistics and the number of ends of each request. */
function setup() {
  const engine = new FakeEngine({ slots: 1 });
  const metrics = new FakeMetrics();
  const observed: ObservedWork[] = [];
  const follow = (isFork = false): WorkObserver => {
    const work: ObservedWork = { stats: {}, ends: 0, reports: 0, isFork };
    observed.push(work);
    return {
      report: (stats) => {
        work.reports += 1;
        work.stats = { ...work.stats, ...stats };
      },
      end: () => void (work.ends += 1),
      fork: () => follow(true),
    };
  };
  const inference = createInference({
    models: new FakeModels([fakeModel()], engine),
    metrics,
    config: configSchema.parse({}),
    observeWork: () => follow(),
  });
  return { engine, metrics, inference, observed };
}

test("a generation reports its model, token counts, time to first token and speed in a few calls", async () => {
  const { inference, observed, metrics } = setup();
  await collectAnswer((await inference.generate(REQUEST, never)).events);
  expect(observed).toEqual([
    {
      stats: {
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
      reports: expect.any(Number),
      isFork: false,
    },
  ]);
  expect(observed[0]!.reports).toBeLessThan(8);
  expect(metrics.firstTokens).toEqual([observed[0]!.stats.firstTokenMs! / 1000]);
  expect(metrics.intervals).toHaveLength(1);
  expect(metrics.cached).toBe(observed[0]!.stats.cachedTokens);
});

test("a failed generation reports the code of its error, before and after its first event", async () => {
  const { inference, engine, observed } = setup();
  await expect(inference.generate({ ...REQUEST, model: "other" }, never)).rejects.toThrow("other");
  engine.script = async function* () {
    yield { type: "start" };
  };
  await expect(collectAnswer((await inference.generate(REQUEST, never)).events)).rejects.toThrow("complete");
  expect(observed).toMatchObject([
    { stats: { failure: "model_not_found" }, ends: 1 },
    { stats: { model: "fake", failure: "inference_failed" }, ends: 1 },
  ]);
});

test("a disconnected client is reported as aborted, and a reader that stops as neither aborted nor failed", async () => {
  const { inference, engine, observed } = setup();
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
  expect(observed).toEqual([
    {
      stats: expect.objectContaining({ model: "fake", isAborted: true }),
      ends: 1,
      reports: 4,
      isFork: false,
    },
    {
      stats: expect.objectContaining({ model: "fake", promptTokens: 5 }),
      ends: 1,
      reports: 4,
      isFork: false,
    },
  ]);
});

test("all choices of an answer are observed as one request", async () => {
  const { inference, observed } = setup();
  const { events } = await generateChoices(inference, [REQUEST, REQUEST, REQUEST], 1, never);
  await collectChoices(events, 3);
  expect(observed.map(({ isFork, ends }) => [isFork, ends])).toEqual([
    [false, 1],
    [true, 1],
    [true, 1],
  ]);
});

test("embeddings report their model and token count, or the code of their error", async () => {
  const { inference, observed, engine } = setup();
  const { totalTokens } = await inference.embed({ input: ["a", "bb"] }, never);
  engine.onText = async () => await Promise.reject(new ServiceError("engine_crashed", "It ended."));
  await expect(inference.embed({ input: ["a"] }, never)).rejects.toThrow("It ended.");
  expect(observed).toMatchObject([
    { stats: { model: "fake", promptTokens: totalTokens }, ends: 1 },
    { stats: { model: "fake", failure: "engine_crashed" }, ends: 1 },
  ]);
});
