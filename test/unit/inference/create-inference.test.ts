import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";
import { DONE, eventsOf } from "../../support/fake-engine.ts";
import { fakeModel } from "../../support/fake-models.ts";
import { endless, leftOver, never, NOTHING, REQUEST, setup } from "./inference-setup.ts";

async function* failing(message: string): AsyncGenerator<GenerationEvent> {
  yield* await Promise.reject<GenerationEvent[]>(new Error(message));
}

describe("a generation", () => {
  test("streams the engine's events and reports the total time", async () => {
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

  test("computes the speed of a single token from the whole request", async () => {
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
    expect(tokensPerSecond).toBeCloseTo(1000 / totalMs);
  });

  test("has released its slot when its last event is read", async () => {
    const all = setup();
    const { events } = await all.inference.generate(REQUEST, never);
    for (;;) {
      const { value } = await events.next();
      if (value?.type === "done") break;
    }
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("rejects if it fails before its first event, so that the response can have a status", async () => {
    const all = setup();
    all.engine.script = () => failing("too long");
    await expect(all.inference.generate(REQUEST, never)).rejects.toThrow("too long");
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("fails if the engine ends without the last event", async () => {
    const all = setup();
    all.engine.script = async function* () {
      yield { type: "start" };
    };
    const { events } = await all.inference.generate(REQUEST, never);
    await expect(collectAnswer(events)).rejects.toMatchObject({ code: "inference_failed" });
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("is counted for an unknown model, and reserves nothing", async () => {
    const all = setup();
    await expect(all.inference.generate({ ...REQUEST, model: "other" }, never)).rejects.toMatchObject({
      code: "model_not_found",
    });
    expect(all.metrics.started).toEqual(["generate"]);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("uses the default model for an empty model name", async () => {
    const { inference } = setup();
    expect((await inference.generate({ ...REQUEST, model: "" }, never)).model).toBe("fake");
  });

  test("parses reasoning and calls by the model's settings", async () => {
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

describe("cancelling a generation", () => {
  test("by leaving the loop aborts it on the engine", async () => {
    const all = setup();
    const { events } = await all.inference.generate(REQUEST, never);
    for await (const event of events) if (event.type === "text-delta") break;
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("before the first step frees the slot as well", async () => {
    const all = setup();
    const { events } = await all.inference.generate(REQUEST, never);
    await events.return?.();
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

  test("by the signal frees the slot even without a reader", async () => {
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

  test("while it waits for a slot leaves no trace", async () => {
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
