import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { PLAIN_TEXT } from "../recorded-events.ts";
import { sseEvents, testApp } from "../../../support/test-app.ts";
import { chunksOf, clientOf, messages, PATH } from "./chat-client.ts";

describe("a request for several choices", () => {
  test("generates them concurrently, each with a different seed", async () => {
    const all = testApp({ events: PLAIN_TEXT, slots: 4 });
    const answer = await clientOf(all).chat.completions.create({ model: "fake", messages, n: 3, seed: 7 });
    expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "Hello world"],
      [1, "Hello world"],
      [2, "Hello world"],
    ]);
    expect(all.engine.requests.map(({ sampling }) => sampling.seed)).toEqual([7, 8, 9]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 });
  });

  test("finishes them with a single slot too", async () => {
    const all = testApp({ events: PLAIN_TEXT, slots: 1 });
    const answers = await Promise.all(
      [1, 2].map(() => clientOf(all).chat.completions.create({ model: "fake", messages, n: 4 })),
    );
    expect(answers.map(({ choices }) => choices.length)).toEqual([4, 4]);
    expect(all.engine.mostInFlight).toBe(1);
  });

  test("streams them with their indexes", async () => {
    const answer = await testApp({ events: PLAIN_TEXT }).post(PATH, { messages, n: 2, stream: true });
    const texts = ["", ""];
    for (const chunk of chunksOf(await sseEvents(answer))) {
      for (const { index, delta } of chunk.choices) texts[index] += delta.content ?? "";
    }
    expect(texts).toEqual(["Hello world", "Hello world"]);
  });

  test("ends all of them if one fails", async () => {
    const all = testApp();
    all.engine.script = async function* () {
      const isSecond = all.engine.requests.length === 2;
      yield* PLAIN_TEXT.slice(0, 3);
      if (isSecond) throw new ServiceError("inference_failed", "No.");
      yield* PLAIN_TEXT.slice(3);
    };
    await expect(
      clientOf(all).chat.completions.create({ model: "fake", messages, n: 3 }),
    ).rejects.toMatchObject({
      status: 500,
      code: "inference_failed",
    });
    await expect.poll(() => all.metrics.totals.activeRequests).toBe(0);
    expect(all.engine.inFlight).toBe(0);
  });

  test("lets choices wait for free slots if there are more than slots", async () => {
    const all = testApp({ slots: 2, config: { models: { slots: 2, queue_size: 0 } } });
    all.engine.script = async function* () {
      await new Promise((resolve) => setImmediate(resolve));
      yield* PLAIN_TEXT;
    };
    const answer = await clientOf(all).chat.completions.create({ model: "fake", messages, n: 128 });
    expect(answer.choices.map(({ index }) => index)).toEqual(Array.from({ length: 128 }, (_, at) => at));
    expect(all.engine.mostInFlight).toBe(2);
  });

  test("rejects more choices than the API allows", async () => {
    await expect(
      clientOf(testApp()).chat.completions.create({ model: "fake", messages, n: 129 }),
    ).rejects.toMatchObject({ status: 400, param: "n" });
  });
});
