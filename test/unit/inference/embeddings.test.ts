import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { embedTruncated } from "../../../src/inference/embeddings.ts";
import { aborted, FakeEngine } from "../../support/fake-engine.ts";
import { fakeModel } from "../../support/fake-models.ts";
import { endless, leftOver, never, NOTHING, REQUEST, setup } from "./inference-setup.ts";

describe("a batch of texts", () => {
  const texts = ["a", "bb", "ccc", "dddd", "eeeee"];

  test("is embedded by one call each, in parallel up to the slots, and answered in order", async () => {
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

  test("is served even if it is larger than the queue", async () => {
    const all = setup({ slots: 1, config: { models: { queue_size: 0 } } });
    const input = Array.from({ length: 50 }, () => "x");
    expect((await all.inference.embed({ input }, never)).vectors).toHaveLength(50);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("is preempted if it has low priority and a request needs its slots", async () => {
    let isBackground = true;
    const all = setup({ slots: 2, isBackground: () => isBackground });
    const isRunning = Promise.withResolvers<void>();
    all.engine.onText = async (_text, signal) => {
      isRunning.resolve();
      await aborted(signal);
    };
    const behind = all.inference.embed({ input: texts }, never);
    await isRunning.promise;
    isBackground = false;
    all.engine.onText = async () => {};
    const before = all.inference.embed({ input: texts }, never);
    await expect(behind).rejects.toMatchObject({ code: "overloaded" });
    expect((await before).vectors).toHaveLength(5);
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

  test("ends when its client disconnects", async () => {
    const all = setup({ slots: 2 });
    all.engine.onText = (_text, signal) => aborted(signal);
    const client = new AbortController();
    const embedding = all.inference.embed({ input: texts }, client.signal);
    await expect.poll(() => all.engine.inFlight).toBe(2);
    client.abort(new Error("gone"));
    await expect(embedding).rejects.toThrow("gone");
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("requires a model for the task", async () => {
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

  test("does not call the engine if it is empty", async () => {
    const all = setup();
    expect(await all.inference.embed({ input: [] }, never)).toMatchObject({ vectors: [], totalTokens: 0 });
    expect(leftOver(all)).toEqual(NOTHING);
  });
});

const NEVER = new AbortController().signal;
/** Batch size of the fake engine, which has a token for each byte and a BOS token. */
const LIMIT = 64;

/** An engine that refuses texts of more tokens than a limit, as the real one does. */
function engineOf(limit = LIMIT) {
  const engine = new FakeEngine();
  const texts: string[] = [];
  const embed = engine.embed.bind(engine);
  engine.embed = async (text, signal) => {
    const tokens = await engine.tokenize(text, { addSpecial: true, parseSpecial: true });
    if (tokens.length > limit) throw new ServiceError("context_length_exceeded", "Too long.");
    texts.push(text);
    return await embed(text, signal);
  };
  return { engine, texts };
}

test("a text that fits is embedded unchanged", async () => {
  const { engine, texts } = engineOf();
  await embedTruncated(engine, "short", NEVER);
  expect(texts).toEqual(["short"]);
});

test("a text that is too long is truncated to the tokens that fit", async () => {
  const { engine, texts } = engineOf();
  await embedTruncated(engine, "x".repeat(10_000), NEVER);
  expect(texts).toEqual(["x".repeat(LIMIT - 1)]);
});

test("an incomplete character at the cut is left out", async () => {
  const { engine, texts } = engineOf();
  await embedTruncated(engine, "🙂".repeat(1000), NEVER);
  expect(texts).toEqual(["🙂".repeat(Math.floor((LIMIT - 1) / 4))]);
});

test("a shorter text is tried if the truncated one has more tokens than counted", async () => {
  const { engine, texts } = engineOf(LIMIT - 2);
  await embedTruncated(engine, "x".repeat(1000), NEVER);
  expect(texts).toHaveLength(1);
  expect(texts[0]!.length).toBeGreaterThan(LIMIT - 8);
});

test("a text is shortened until it fits if the engine has no tokenizer", async () => {
  const { engine, texts } = engineOf();
  const tokenize = engine.tokenize.bind(engine);
  engine.tokenize = () => Promise.reject(new ServiceError("unsupported_feature", "Stock."));
  engine.embed = async (text) => {
    const { length } = await tokenize(text, { addSpecial: true, parseSpecial: true });
    if (length > LIMIT) throw new ServiceError("context_length_exceeded", "Too long.");
    texts.push(text);
    return { vector: [text.length, 0], tokens: length };
  };
  await embedTruncated(engine, "x".repeat(10_000), NEVER);
  expect(texts).toHaveLength(1);
  expect(texts[0]!.length).toBeGreaterThan(LIMIT / 2);
});

test("any other error of the engine is thrown", async () => {
  const { engine } = engineOf();
  engine.embed = () => Promise.reject(new ServiceError("engine_crashed", "Gone."));
  await expect(embedTruncated(engine, "x", NEVER)).rejects.toMatchObject({ code: "engine_crashed" });
});
