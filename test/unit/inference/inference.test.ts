import { expect, it } from "vitest";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import type { InferenceRequest } from "../../../src/inference/inference.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";
import { DONE } from "../../support/fake-engine.ts";
import { fakeModel } from "../../support/fake-models.ts";
import { never, REQUEST, setup } from "./inference-setup.ts";

const DEFAULTS = { maxTokens: 512, sampling: {} };

it.each<[string, number, Partial<InferenceRequest>, number | undefined, string | undefined]>([
  ["the request's limit", 16, { maxTokens: 16, defaults: DEFAULTS }, 100, "max_tokens"],
  ["the model's", 100, { maxTokens: undefined, defaults: DEFAULTS }, 100, "num_predict"],
  ["the API's default", 512, { maxTokens: undefined, defaults: DEFAULTS }, undefined, "default"],
  ["the context, below the limit", 300, { maxTokens: undefined, defaults: DEFAULTS }, undefined, "context"],
  ["the context, without a limit", 300, { maxTokens: undefined }, undefined, "context"],
  ["its time limit", 300, { maxTokens: undefined, sampling: { maxPredictMs: 1 } }, undefined, "time"],
  [
    "its indentation limit",
    300,
    { maxTokens: undefined, sampling: { minIndent: 4 } },
    undefined,
    "indentation",
  ],
])(
  "a truncated answer reports which limit it reached: %s",
  async (_what, tokens, request, ofModel, limitedBy) => {
    const model = fakeModel({ settings: { ...NO_SETTINGS, maxTokens: ofModel } });
    const { engine, inference } = setup({ model });
    engine.script = async function* () {
      yield { type: "start" };
      yield { ...DONE, reason: "length", usage: { ...DONE.usage, completionTokens: tokens } };
    };
    const { events } = await inference.generate({ ...REQUEST, ...request }, never);
    expect(await collectAnswer(events)).toMatchObject({ reason: "length", limitedBy });
  },
);

it("an answer that ends by itself reports no limit, even if it has exactly the maximum of tokens", async () => {
  const { inference } = setup();
  const { events } = await inference.generate({ ...REQUEST, maxTokens: 3 }, never);
  expect(await collectAnswer(events)).not.toHaveProperty("limitedBy");
});
