import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import { aborted, DONE } from "../../support/fake-engine.ts";
import { endless, leftOver, never, NOTHING, REQUEST, setup } from "./inference-setup.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

describe("limits of a request", () => {
  const LIMIT_MS = 60_000;
  const config = { engine: { request_timeout: "60s" } };

  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
  afterEach(() => void vi.useRealTimers());

  test("a request past its deadline ends with an error", async () => {
    const all = setup({ config });
    all.engine.script = endless;
    const { events } = await all.inference.generate(REQUEST, never);
    const answer = collectAnswer(events);
    vi.advanceTimersByTime(LIMIT_MS);
    await expect(answer).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("a reader that stops reading keeps its slot no longer than the deadline", async () => {
    const all = setup({ config });
    all.engine.script = endless;
    const { events } = await all.inference.generate(REQUEST, never);
    await events.next();
    vi.advanceTimersByTime(LIMIT_MS);
    await expect.poll(() => all.inference.activeRequests).toBe(0);
    await expect(collectAnswer(events)).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("there is no deadline if the configuration disables it", async () => {
    const { inference } = setup({ config: { engine: { request_timeout: -1 } } });
    expect(await collectAnswer((await inference.generate(REQUEST, never)).events)).toMatchObject({
      text: "Hello world",
    });
  });

  test("a request beyond slots and queue limit is refused as overloaded", async () => {
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
  test("fails the running and the waiting requests", async () => {
    const all = setup({ slots: 1 });
    all.engine.script = endless;
    const { events } = await all.inference.generate(REQUEST, never);
    const running = collectAnswer(events);
    const waiting = all.inference.generate(REQUEST, never);
    await expect.poll(() => all.models.leases).toBe(2);
    void all.engine.crash("aborted");
    await expect(running).rejects.toMatchObject({ code: "engine_crashed" });
    await expect(waiting).rejects.toMatchObject({ code: "engine_crashed" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("unloading a model fails waiting requests with model_not_loaded", async () => {
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

test("no permits, leases or timers are left after a thousand requests that end in every way", async () => {
  const random = randomNumbers(3);
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
        await events.return?.();
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
