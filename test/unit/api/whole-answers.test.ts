import { expect, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { FakeModels } from "../../support/fake-models.ts";
import { fakeApp } from "../../support/fake-services.ts";
import { ABLE } from "../../support/test-app.ts";

const messages = [{ role: "user", content: "hi" }];

test.each([
  ["/api/chat", { messages }],
  ["/api/generate", { prompt: "hi" }],
  ["/ollama/api/chat", { messages }],
  ["/ollama/api/generate", { prompt: "hi" }],
  ["/v1/chat/completions", { messages }],
  ["/v1/completions", { prompt: "hi" }],
  ["/v1/responses", { input: "hi" }],
  ["/v1/messages", { messages, max_tokens: 3 }],
  ["/completion", { prompt: "hi" }],
])("%s sets isBuffered to whether the answer is streamed", async (path, body) => {
  const models = new FakeModels([ABLE], new FakeEngine());
  const config = configSchema.parse({});
  const metrics = new FakeMetrics();
  const inference = createInference({ models, metrics, config });
  const generate = vi.spyOn(inference, "generate");
  const app = fakeApp({ models, overrides: { config, inference, metrics } });
  for (const stream of [false, true]) {
    const headers = { "content-type": "application/json" };
    const data = JSON.stringify({ model: ABLE.alias, ...body, stream });
    await (await app.request(path, { method: "POST", headers, body: data })).text();
    expect(generate.mock.lastCall?.[0].isBuffered).toBe(!stream);
  }
});
