import { expect, it } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import { configSchema } from "../../../src/config/schema.ts";
import { toReportedError, toServiceError } from "../../../src/engine/protocol/messages.ts";
import { renderAnthropicError } from "../../../src/api/anthropic/anthropic-error.ts";
import { fakeModel } from "../../support/fake-models.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { never, REQUEST } from "./inference-setup.ts";

const contextExcess = { promptTokens: 18_211, contextSize: 4096 };
const tooLong = new ServiceError("context_length_exceeded", "Too long.", { contextExcess });

it("a prompt that is too long is refused with the message of the model's lease and its token counts", async () => {
  const engine = new FakeEngine();
  // oxlint-disable-next-line require-yield
  engine.script = async function* () {
    throw tooLong;
  };
  const inference = createInference({
    models: {
      acquire: async () => ({
        model: fakeModel(),
        engine,
        explainExcess: ({ promptTokens }) => `Explained: ${promptTokens}.`,
        [Symbol.dispose]: () => undefined,
      }),
    },
    metrics: new FakeMetrics(),
    config: configSchema.parse({}),
  });
  await expect(inference.generate(REQUEST, never)).rejects.toMatchObject({
    code: "context_length_exceeded",
    message: "Explained: 18211.",
    contextExcess,
  });
});

it("the token counts of a prompt that is too long cross the process boundary", () => {
  expect(toServiceError(toReportedError(tooLong)).contextExcess).toEqual(contextExcess);
});

it("the messages API begins the error with the sentence by which its clients know to shorten a conversation", () => {
  expect(renderAnthropicError(tooLong, "req_1")).toMatchObject({
    status: 400,
    body: { error: { message: "prompt is too long: 18211 tokens > 4096 maximum. Too long." } },
  });
  const uncounted = new ServiceError("context_length_exceeded", "It has 9 characters.");
  expect(renderAnthropicError(uncounted, "req_1")).toMatchObject({
    body: { error: { message: "prompt is too long: It has 9 characters." } },
  });
});
