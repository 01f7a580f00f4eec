import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { Inference, InferenceEvent, InferenceRequest } from "../../../src/inference/inference.ts";
import type { Model } from "../../../src/models/model.ts";
import { aborted, DONE, eventsOf, FakeEngine, fakeModel, FakeModels } from "./fake-engine.ts";
import { FakeMetrics } from "./fake-metrics.ts";
import { randomSource } from "./random-pieces.ts";

const never = new AbortController().signal;

const REQUEST: InferenceRequest = {
  maxTokens: 16,
  endpoint: "generate",
  input: { kind: "prompt", prompt: "Once" },
  sampling: {},
  format: { type: "text" },
  defaults: { sampling: {} },
};

interface Setup {
  engine: FakeEngine;
  models: FakeModels;
  metrics: FakeMetrics;
  inference: Inference;
}

function setup(
  options: { slots?: number; model?: Model; config?: ConfigInput; now?: () => number } = {},
): Setup {
  const engine = new FakeEngine({ slots: options.slots ?? 2 });
  const models = new FakeModels(engine, options.model ?? fakeModel());
  const metrics = new FakeMetrics();
  const config = configSchema.parse(options.config ?? {});
  const inference = createInference({ models, metrics, config, ...(options.now && { now: options.now }) });
  return { engine, models, metrics, inference };
}

/** What of all requests is left. */
function leftOver({ engine, models, metrics, inference }: Setup) {
  return {
    inFlight: engine.inFlight,
    leases: models.leases,
    active: inference.activeRequests,
    counted: metrics.totals.activeRequests,
    waiting: metrics.waiting,
  };
}

const NOTHING = { inFlight: 0, leases: 0, active: 0, counted: 0, waiting: 0 };

async function* failing(message: string): AsyncGenerator<GenerationEvent> {
  yield* await Promise.reject<GenerationEvent[]>(new Error(message));
}

/** Begins, then waits for its signal: a generation that takes for ever. */
async function* endless(_request: unknown, signal: AbortSignal): AsyncGenerator<{ type: "start" }> {
  yield { type: "start" };
  await aborted(signal);
}

describe("a generation", () => {
  test("streams the engine's events and says how long the request took", async () => {
    let now = 0;
    const all = setup({ now: () => (now += 10) });
    const { model, events } = await all.inference.generate(REQUEST, never);
    const seen: InferenceEvent[] = [];
    for await (const event of events) seen.push(event);
    expect(model).toBe("fake");
    expect(seen.slice(0, -1)).toEqual(eventsOf("Hello", " world").slice(0, -1));
    expect(seen.at(-1)).toMatchObject({ ...DONE, tokensPerSecond: 100, totalMs: expect.any(Number) });
    expect(all.metrics.generated).toBe(3);
    expect(all.metrics.prompted).toBe(7);
    expect(all.metrics.finished).toEqual(["generate"]);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("of a single token is as fast as the whole request", async () => {
    let now = 0;
    const all = setup({ now: () => (now += 10) });
    all.engine.script = async function* () {
      yield {
        ...DONE,
        usage: { ...DONE.usage, completionTokens: 1 },
        timings: { promptMs: 10, completionMs: 0.001 },
      };
    };
    const { totalMs, tokensPerSecond } = await collectAnswer(
      (await all.inference.generate(REQUEST, never)).events,
    );
    expect(tokensPerSecond).toBe(1000 / totalMs);
  });

  test("has given its slot back when its last event is read, though nobody asks for more", async () => {
    const all = setup();
    const { events } = await all.inference.generate(REQUEST, never);
    for (;;) {
      const { value } = await events.next();
      if (value?.type === "done") break;
    }
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("that fails before its first event rejects, so that the answer can have a status", async () => {
    const all = setup();
    all.engine.script = () => failing("too long");
    await expect(all.inference.generate(REQUEST, never)).rejects.toThrow("too long");
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("that breaks off without its last event is an error", async () => {
    const all = setup();
    all.engine.script = async function* () {
      yield { type: "start" };
    };
    const { events } = await all.inference.generate(REQUEST, never);
    await expect(collectAnswer(events)).rejects.toMatchObject({ code: "inference_failed" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("of an unknown model is counted, and nothing is held", async () => {
    const all = setup();
    await expect(all.inference.generate({ ...REQUEST, model: "other" }, never)).rejects.toMatchObject({
      code: "model_not_found",
    });
    expect(all.metrics.started).toEqual(["generate"]);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("with an empty model name goes to the default model", async () => {
    const { inference } = setup();
    expect((await inference.generate({ ...REQUEST, model: "" }, never)).model).toBe("fake");
  });

  test("reads reasoning and calls as the model's settings say", async () => {
    const plain = fakeModel();
    const toolFormat = {
      style: "json",
      callStart: "<c>",
      callEnd: "</c>",
      resultStart: "<r>",
      resultEnd: "</r>",
    };
    const thinking = { start: "<think>", end: "</think>", enabled: true };
    const all = setup({ model: fakeModel({ settings: { ...plain.settings, thinking, toolFormat } }) });
    all.engine.script = async function* () {
      yield* eventsOf("<thi", "nk>hm</think>", 'ok <c>{"na', 'me":"add"}</c>');
    };
    const { events } = await all.inference.generate(
      {
        ...REQUEST,
        input: {
          kind: "chat",
          messages: [{ role: "user", content: [{ type: "text", text: "1+1" }] }],
          tools: [{ name: "add" }],
          toolChoice: "auto",
          parallelToolCalls: true,
        },
      },
      never,
    );
    expect(await collectAnswer(events)).toMatchObject({
      reasoning: "hm",
      text: "ok",
      toolCalls: [{ name: "add", arguments: "{}" }],
      reason: "tool_calls",
    });
  });
});

describe("leaving", () => {
  test("the loop cancels the generation", async () => {
    const all = setup();
    const { events } = await all.inference.generate(REQUEST, never);
    for await (const event of events) if (event.type === "text-delta") break;
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("before the first step frees the slot too", async () => {
    const all = setup();
    const { events } = await all.inference.generate(REQUEST, never);
    await events.return();
    expect(leftOver(all)).toEqual(NOTHING);
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  test("by the signal throws its reason to the reader", async () => {
    const all = setup();
    all.engine.script = endless;
    const client = new AbortController();
    const { events } = await all.inference.generate(REQUEST, client.signal);
    const answer = collectAnswer(events);
    client.abort(new Error("gone"));
    await expect(answer).rejects.toThrow("gone");
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("by the signal frees the slot when nobody reads", async () => {
    const all = setup({ slots: 1 });
    all.engine.script = endless;
    const client = new AbortController();
    await all.inference.generate(REQUEST, client.signal);
    all.engine.script = async function* () {
      yield* eventsOf("next");
    };
    const next = all.inference.generate(REQUEST, never);
    client.abort(new Error("gone"));
    expect(await collectAnswer((await next).events)).toMatchObject({ text: "next" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("while waiting for a slot costs nothing", async () => {
    const all = setup({ slots: 1 });
    all.engine.script = endless;
    const first = new AbortController();
    await all.inference.generate(REQUEST, first.signal);
    const client = new AbortController();
    const waiting = all.inference.generate(REQUEST, client.signal);
    client.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    expect(all.engine.requests).toHaveLength(1);
    first.abort(new Error("gone too"));
    await expect.poll(() => all.inference.activeRequests).toBe(0);
    expect(leftOver(all)).toEqual(NOTHING);
  });
});

describe("limits", () => {
  test("a request past its deadline ends with an error", async () => {
    const all = setup({ config: { engine: { request_timeout: "20ms" } } });
    all.engine.script = endless;
    const { events } = await all.inference.generate(REQUEST, never);
    await expect(collectAnswer(events)).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("a reader that stands still holds its slot no longer than the deadline", async () => {
    const all = setup({ config: { engine: { request_timeout: "20ms" } } });
    const { events } = await all.inference.generate(REQUEST, never);
    await events.next();
    await expect.poll(() => all.inference.activeRequests).toBe(0);
    await expect(collectAnswer(events)).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("no deadline is set when the configuration says never", async () => {
    const { inference } = setup({ config: { engine: { request_timeout: -1 } } });
    expect(await collectAnswer((await inference.generate(REQUEST, never)).events)).toMatchObject({
      text: "Hello world",
    });
  });

  test("beyond slots and queue the answer is overloaded", async () => {
    const all = setup({ slots: 1, config: { models: { queue_size: 1 } } });
    all.engine.script = endless;
    const clients = [new AbortController(), new AbortController()];
    await all.inference.generate(REQUEST, clients[0]!.signal);
    const waiting = all.inference.generate(REQUEST, clients[1]!.signal).catch(() => undefined);
    await expect.poll(() => all.models.leases).toBe(2);
    await expect(all.inference.generate(REQUEST, never)).rejects.toMatchObject({ code: "overloaded" });
    for (const client of clients) client.abort();
    await waiting;
    await expect.poll(() => all.inference.activeRequests).toBe(0);
    expect(leftOver(all)).toEqual(NOTHING);
  });
});

describe("a crash of the engine", () => {
  test("ends the running and the waiting requests with an error each", async () => {
    const all = setup({ slots: 1 });
    all.engine.script = endless;
    const { events } = await all.inference.generate(REQUEST, never);
    const running = collectAnswer(events);
    const waiting = all.inference.generate(REQUEST, never);
    await expect.poll(() => all.models.leases).toBe(2);
    all.engine.crash("aborted");
    await expect(running).rejects.toMatchObject({ code: "engine_crashed" });
    await expect(waiting).rejects.toMatchObject({ code: "engine_crashed" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("an unload tells those who wait that the model is not loaded any more", async () => {
    const all = setup({ slots: 1 });
    all.engine.script = endless;
    const { events } = await all.inference.generate(REQUEST, never);
    const running = collectAnswer(events).catch(() => undefined);
    const waiting = all.inference.generate(REQUEST, never);
    await expect.poll(() => all.models.leases).toBe(2);
    await all.engine.close();
    await expect(waiting).rejects.toMatchObject({ code: "model_not_loaded" });
    await running;
    expect(leftOver(all)).toEqual(NOTHING);
  });
});

describe("a batch of texts", () => {
  const texts = ["a", "bb", "ccc", "dddd", "eeeee"];

  test("is embedded in single calls, in parallel up to the slots, and answered in order", async () => {
    const all = setup({ slots: 2 });
    all.engine.onText = (text) => delay(6 - text.length);
    const answer = await all.inference.embed({ input: texts }, never);
    expect(answer).toEqual({
      model: "fake",
      vectors: [
        [1, 0],
        [2, 0],
        [3, 0],
        [4, 0],
        [5, 0],
      ],
      totalTokens: 15,
      loadMs: expect.any(Number),
    });
    expect(all.engine.mostInFlight).toBe(2);
    expect(all.metrics.finished).toEqual(["embeddings"]);
    expect(all.metrics.prompted).toBe(15);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("larger than the queue is served all the same", async () => {
    const all = setup({ slots: 1, config: { models: { queue_size: 0 } } });
    const input = Array.from({ length: 50 }, () => "x");
    expect((await all.inference.embed({ input }, never)).vectors).toHaveLength(50);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("shares the slots with generations", async () => {
    const all = setup({ slots: 1 });
    all.engine.script = endless;
    const client = new AbortController();
    await all.inference.generate(REQUEST, client.signal);
    const embedding = all.inference.embed({ input: texts }, never);
    await expect.poll(() => all.models.leases).toBe(2);
    expect(all.engine.mostInFlight).toBe(1);
    client.abort();
    expect((await embedding).vectors).toHaveLength(5);
    expect(all.engine.mostInFlight).toBe(1);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("ends with the first failure and starts no further call", async () => {
    const all = setup({ slots: 2 });
    let calls = 0;
    all.engine.onText = async (text, signal) => {
      calls += 1;
      if (text === "bb") throw new Error("bad text");
      await aborted(signal);
    };
    await expect(all.inference.embed({ input: texts }, never)).rejects.toThrow("bad text");
    expect(calls).toBe(2);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("ends with its client", async () => {
    const all = setup({ slots: 2 });
    all.engine.onText = (_text, signal) => aborted(signal);
    const client = new AbortController();
    const embedding = all.inference.embed({ input: texts }, client.signal);
    await expect.poll(() => all.engine.inFlight).toBe(2);
    client.abort(new Error("gone"));
    await expect(embedding).rejects.toThrow("gone");
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("needs a model made for it", async () => {
    const { gguf } = fakeModel();
    const reranker = setup({ model: fakeModel({ gguf: { ...gguf, purpose: "rerank" } }) });
    await expect(reranker.inference.embed({ input: texts }, never)).rejects.toMatchObject({
      code: "unsupported_feature",
    });
    expect(await reranker.inference.rerank({ query: "q", documents: texts }, never)).toEqual({
      model: "fake",
      scores: [1, 2, 3, 4, 5],
      totalTokens: 15,
    });
    const other = setup();
    await expect(other.inference.rerank({ query: "q", documents: texts }, never)).rejects.toMatchObject({
      code: "unsupported_feature",
    });
    expect(leftOver(reranker)).toEqual(NOTHING);
    expect(leftOver(other)).toEqual(NOTHING);
  });

  test("without texts asks nothing of the engine", async () => {
    const all = setup();
    expect(await all.inference.embed({ input: [] }, never)).toMatchObject({ vectors: [], totalTokens: 0 });
    expect(leftOver(all)).toEqual(NOTHING);
  });
});

test("nothing is left over after a thousand requests that end in every way", async () => {
  const random = randomSource(3);
  const all = setup({ slots: 3, config: { models: { queue_size: 6 } } });
  all.engine.script = async function* (_request, signal) {
    if (random() < 0.1) throw new Error("refused");
    yield { type: "start" };
    for (let piece = random() * 4; piece > 0; piece -= 1) {
      if (random() < 0.5) await Promise.resolve();
      if (random() < 0.1) throw new Error("failed");
      if (random() < 0.1) await aborted(signal);
      signal.throwIfAborted();
      yield { type: "text-delta", text: "x" };
    }
    if (random() < 0.9) yield DONE;
  };
  const outcomes = new Map<string, number>();
  const clients: AbortController[] = [];
  const request = async (): Promise<string> => {
    const client = new AbortController();
    clients.push(client);
    try {
      const { events } = await all.inference.generate(REQUEST, client.signal);
      if (random() < 0.1) {
        await events.return();
        return "left at once";
      }
      for await (const event of events) {
        if (event.type === "text-delta" && random() < 0.1) return "left";
        if (event.type === "done") return "done";
      }
      return "no end";
    } catch (error) {
      return error instanceof Error ? error.message.slice(0, 12) : String(error);
    }
  };
  const requests: Promise<void>[] = [];
  for (let step = 0; step < 1000; step += 1) {
    requests.push(request().then((outcome) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)));
    if (random() < 0.3) clients[Math.floor(random() * clients.length)]?.abort(new Error("gone"));
    if (random() < 0.5) await delay(0);
  }
  for (const client of clients) client.abort(new Error("gone"));
  await Promise.all(requests);
  await expect.poll(() => all.inference.activeRequests).toBe(0);
  expect(leftOver(all)).toEqual(NOTHING);
  expect(all.engine.mostInFlight).toBe(3);
  expect(outcomes.get("no end")).toBeUndefined();
  expect([...outcomes.keys()]).toEqual(expect.arrayContaining(["done", "left", "gone", "refused", "failed"]));
});
