import { expect, test } from "vitest";
import { Activity } from "../../../../src/daemon/activity/activity.ts";
import { activitySchema } from "../../../../src/api/wire/activity.ts";
import { createInference } from "../../../../src/inference/create-inference.ts";
import { configSchema } from "../../../../src/config/schema.ts";
import { FakeEngine } from "../../../support/fake-engine.ts";
import { FakeMetrics } from "../../../support/fake-metrics.ts";
import { FakeModels } from "../../../support/fake-models.ts";
import { fakeApp, type FakeOptions } from "../../../support/fake-services.ts";
import { ABLE } from "../../../support/test-app.ts";

const PATH = "/api/system/activity";

/** App with an inference that reports to an activity log. */
function setup(options: FakeOptions = {}) {
  const activity = new Activity();
  const models = new FakeModels([ABLE], new FakeEngine({ slots: 1 }));
  const config = configSchema.parse({});
  const { followWork } = activity;
  const inference = createInference({ models, metrics: new FakeMetrics(), config, observeWork: followWork });
  const app = fakeApp({ models, ...options, overrides: { activity, inference } });
  const post = async (path: string, body: object): Promise<string> => {
    const headers = { "content-type": "application/json", "x-request-id": path };
    const answer = await app.request(path, { method: "POST", headers, body: JSON.stringify(body) });
    return await answer.text();
  };
  const report = async (query = "") =>
    activitySchema.parse(await (await app.request(`${PATH}${query}`)).json());
  return { app, activity, post, report };
}

test.each([
  ["/api/chat", { messages: [{ role: "user", content: "Hi" }] }],
  ["/api/generate", { prompt: "Hi" }],
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }], stream: true }],
  ["/v1/messages", { model: "fake", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }],
  ["/v1/responses", { input: "Hi" }],
  ["/ollama/api/chat", { model: "fake", messages: [{ role: "user", content: "Hi" }] }],
])("records token counts and times of an answer of %s", async (path, body) => {
  const { post, report } = setup();
  await post(path, body);
  const { requests } = await report();
  expect(requests).toMatchObject([
    {
      id: path,
      path,
      method: "POST",
      status: 200,
      model: "fake",
      prompt_tokens: 7,
      completion_tokens: 3,
      first_token_ms: expect.any(Number),
    },
  ]);
});

test("sums the choices of one answer, including those that start during the stream", async () => {
  const { post, report } = setup();
  const body = { messages: [{ role: "user", content: "Hi" }], n: 3 };
  await post("/v1/chat/completions", body);
  await post("/v1/chat/completions", { ...body, stream: true });
  const { requests } = await report();
  expect(requests.map((each) => each.completion_tokens)).toEqual([9, 9]);
});

test("records status and error code of a failed request, without its body", async () => {
  const { post, report } = setup();
  await post("/api/generate", { model: "none", prompt: "a secret" });
  const answer = await report();
  expect(answer.requests).toMatchObject([{ status: 404, failure: "model_not_found" }]);
  expect(JSON.stringify(answer)).not.toContain("secret");
});

test("records paths without the query, where clients may put keys", async () => {
  const { app, report } = setup();
  await app.request("/health?key=secret");
  expect(await report()).toMatchObject({ requests: [{ path: "/health" }] });
});

test("returns only entries after a sequence number", async () => {
  const { app, report } = setup();
  await app.request("/health");
  const { next } = await report();
  await app.request("/status");
  const remaining = await report(`?after=${next}`);
  // The first report is itself a request.
  expect(remaining.requests.map(({ path }) => path)).toEqual([PATH, "/status"]);
});

test.each(["level=loud", "after=-1", "after=x"])("rejects the query ?%s", async (query) => {
  const { app } = setup();
  expect((await app.request(`${PATH}?${query}`)).status).toBe(400);
});

test("requires a key if the daemon has keys", async () => {
  const { app } = setup({ config: { api_keys: ["a-key"] } });
  expect((await app.request(PATH)).status).toBe(401);
  expect((await app.request(PATH, { headers: { authorization: "Bearer a-key" } })).status).toBe(200);
});

test("is forbidden for pages of other origins unless their origin is listed", async () => {
  const headers = { host: "daemon.test:8080", origin: "https://page.test", "sec-fetch-site": "cross-site" };
  const { app } = setup({ config: { http: { allowed_hosts: ["daemon.test"] } } });
  expect((await app.request(PATH, { headers })).status).toBe(403);
  const listed = setup({
    config: { http: { allowed_hosts: ["daemon.test"], cors_origins: ["https://page.test"] } },
  });
  expect((await listed.app.request(PATH, { headers })).status).toBe(200);
});
