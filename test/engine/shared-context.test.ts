import fs from "node:fs";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { type Answer, collectAnswer } from "../../src/inference/collect-answer.ts";
import { createInference } from "../../src/inference/create-inference.ts";
import type { Inference, InferenceRequest, InferenceStream } from "../../src/inference/inference.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { fakeModel } from "../support/fake-models.ts";
import { FakeMetrics } from "../support/fake-metrics.ts";
import { generated } from "../support/generated.ts";

const CONTEXT = 512;
/** Context of which a quarter takes long enough that other requests begin meanwhile, also on a busy machine. */
const LONG_CONTEXT = 2048;
/** Requests that together need more than twice the context. */
const REQUESTS = 8;

const folder = temporaryFolder();
let engine: Engine;
let longEngine: Engine;
let inference: Inference;

beforeAll(async () => {
  const file = writeModel(folder, "tiny", tinyLlama({ context: LONG_CONTEXT }));
  const start = async (contextSize: number): Promise<Engine> =>
    await startEngine(engineSpec(file, { contextSize, slots: 4, sharedContext: true }));
  [engine, longEngine] = await Promise.all([start(CONTEXT), start(LONG_CONTEXT)]);
  inference = inferenceOn(engine);
});

afterAll(async () => {
  await Promise.all([engine.close(), longEngine.close()]);
  fs.rmSync(folder, { recursive: true, force: true });
});

function inferenceOn(on: Engine): Inference {
  const models = { acquire: async () => ({ model: fakeModel(), engine: on, [Symbol.dispose]: () => {} }) };
  return createInference({ models, metrics: new FakeMetrics(), config: configSchema.parse({}) });
}

async function begin(index: number, maxTokens?: number, by = inference): Promise<InferenceStream> {
  const request: InferenceRequest = {
    endpoint: "generate",
    input: { kind: "prompt", prompt: `request ${index} ` },
    maxTokens,
    sampling: { temperature: 0, ignoreEos: true },
    format: { type: "text" },
    defaults: { sampling: {} },
  };
  return await by.generate(request, NEVER);
}

async function generate(index: number, maxTokens?: number): Promise<Answer> {
  return await collectAnswer((await begin(index, maxTokens)).events);
}

describe("requests that together need more than the context", () => {
  test("get the answers that each would get alone", async () => {
    const maxTokens = 70;
    const alone: string[] = [];
    for (let index = 0; index < REQUESTS; index++) alone.push((await generate(index, maxTokens)).text);
    const together = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => await generate(index, maxTokens)),
    );
    expect(together.map(({ usage }) => usage.completionTokens)).toEqual(Array(REQUESTS).fill(maxTokens));
    expect(together.map(({ text }) => text)).toEqual(alone);
  });

  test("and have no limit fill it together and end when it is full", async () => {
    const long = inferenceOn(longEngine);
    const order: string[] = [];
    const answers = await Promise.all(
      [0, 1, 2, 3].map(async (index) => {
        const { events } = await begin(index, undefined, long);
        order.push("begun");
        const answer = await collectAnswer(events);
        order.push("over");
        return answer;
      }),
    );
    expect(order).toEqual([...Array<string>(4).fill("begun"), ...Array<string>(4).fill("over")]);
    for (const { reason, limitedBy } of answers) expect([reason, limitedBy]).toEqual(["length", "context"]);
    const used = answers.map(({ usage }) => usage.promptTokens + usage.completionTokens);
    for (const tokens of used) expect(tokens).toBeGreaterThanOrEqual((LONG_CONTEXT / 4) * 0.7);
  });

  test("never fail for lack of context, even without reserved shares", async () => {
    const endless = promptRequest("one two three", { maxTokens: undefined, sampling: { ignoreEos: true } });
    const answers = await Promise.all(
      [0, 1, 2, 3].map(async (index) => {
        // The last requests start when the first ones fill the context.
        await setTimeout(index * 80);
        return doneOf(await collect(generated(engine, endless, NEVER)));
      }),
    );
    expect(answers.map(({ reason }) => reason)).toEqual(Array(4).fill("length"));
  });

  test("can use all of it alone", async () => {
    const { usage, reason } = await generate(1);
    expect(reason).toBe("length");
    expect(usage.promptTokens + usage.completionTokens).toBeGreaterThanOrEqual(CONTEXT - 1);
  });

  test("free context when one of them reuses a full slot", async () => {
    const request = async (prompt: string, maxTokens: number): Promise<number> =>
      doneOf(await collect(generated(engine, promptRequest(prompt, { maxTokens, sampling }), NEVER))).usage
        .completionTokens;
    const sampling = { temperature: 0, ignoreEos: true };
    await request("alpha beta gamma", 200);
    const prompts = ["x".repeat(100), "y".repeat(30), "z".repeat(20), "alpha beta gamma delta"];
    const lengths = await Promise.all(prompts.map(async (prompt) => await request(prompt, 10)));
    expect(lengths).toEqual([10, 10, 10, 10]);
  });

  test("free context for embeddings", async () => {
    const text = "word ".repeat(10);
    const [, { vectors }] = await Promise.all([
      generate(1),
      inference.embed({ input: Array<string>(6).fill(text) }, NEVER),
    ]);
    expect(vectors).toHaveLength(6);
  });
});
