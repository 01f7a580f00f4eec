import { describe, expect, it } from "vitest";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { InferenceRequest } from "../../../src/inference/inference.ts";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";
import { DONE, FakeEngine } from "../../support/fake-engine.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { never, REQUEST } from "./inference-setup.ts";

/** Most tokens that the engine would generate. */
const TOKENS = 3000;

interface Case {
  readonly request?: Partial<InferenceRequest>;
  readonly ofModel?: boolean;
  readonly config?: ConfigInput["models"];
  readonly event?: (index: number) => GenerationEvent;
}

/** The answer of an engine that repeats itself until it is stopped. */
async function answerOf({ request, ofModel, config, event }: Case) {
  const engine = new FakeEngine();
  let generated = 0;
  engine.script = async function* (_request, signal) {
    yield { type: "start" };
    yield { type: "prompt-progress", processed: 9, total: 9, cached: 4 };
    for (; generated < TOKENS && !signal.aborted; generated++) {
      yield event?.(generated) ?? { type: "text-delta", text: "\n" };
    }
    if (!signal.aborted) yield DONE;
  };
  const settings = { ...NO_SETTINGS, ...(ofModel !== undefined && { repetitionGuard: ofModel }) };
  const models = new FakeModels([fakeModel({ settings })], engine);
  const stopped: string[] = [];
  const inference = createInference({
    models,
    metrics: new FakeMetrics(),
    config: configSchema.parse({ models: config ?? {} }),
    onRepetition: (model) => void stopped.push(model),
  });
  const { events } = await inference.generate({ ...REQUEST, ...request }, never);
  return { answer: await collectAnswer(events), generated, stopped, models, inference };
}

describe("the guard against repetition", () => {
  it("ends the answer as if it had reached its length, says so, and stops the engine at once", async () => {
    const { answer, generated, stopped, models, inference } = await answerOf({
      request: { repetitionGuard: true },
    });
    expect(answer).toMatchObject({
      reason: "length",
      limitedBy: "repetition",
      text: "\n".repeat(256),
      usage: { promptTokens: 9, cachedTokens: 4, completionTokens: 256 },
    });
    expect(generated).toBeLessThan(300);
    expect(stopped).toEqual(["fake"]);
    expect([models.leases, inference.activeRequests]).toEqual([0, 0]);
  });

  it("counts tokens whose texts have been joined, however many were", async () => {
    const { answer } = await answerOf({
      request: { repetitionGuard: true },
      event: (index) => {
        const count = 1 + (index % 7);
        return {
          type: "text-delta",
          text: " go".repeat(count),
          ends: Array.from({ length: count }, (_, at) => 3 * (at + 1)),
        };
      },
    });
    expect(answer).toMatchObject({
      limitedBy: "repetition",
      text: " go".repeat(256),
      usage: { completionTokens: 256 },
    });
  });

  it("is off by default", async () => {
    const { answer, generated, stopped } = await answerOf({});
    expect(answer).toMatchObject({ reason: "stop" });
    expect(answer).not.toHaveProperty("limitedBy");
    expect(generated).toBe(TOKENS);
    expect(stopped).toEqual([]);
  });

  it.each<[string, Case, boolean]>([
    ["the configuration", { config: { repetition_guard: true } }, true],
    ["the model", { ofModel: true }, true],
    ["the model, against the configuration", { config: { repetition_guard: true }, ofModel: false }, false],
    ["the request, against the model", { ofModel: true, request: { repetitionGuard: false } }, false],
  ])("is decided by %s", async (_who, options, isOn) => {
    const { generated } = await answerOf(options);
    expect(generated < TOKENS).toBe(isOn);
  });

  it.each<[string, (index: number) => GenerationEvent]>([
    ["reasoning", () => ({ type: "reasoning-delta", text: " Wait." })],
    [
      "the arguments of a call",
      (index) =>
        index === 0
          ? { type: "tool-call-start", index: 0, id: "1", name: "look" }
          : { type: "tool-call-delta", index: 0, arguments: " " },
    ],
  ])("looks at %s, too", async (_what, event) => {
    const { answer, generated } = await answerOf({ request: { repetitionGuard: true }, event });
    expect(answer.limitedBy).toBe("repetition");
    expect(generated).toBeLessThan(300);
  });
});
