import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { anthropicModelListSchema, anthropicModelSchema } from "../../../../src/api/anthropic/model-list.ts";
import { fakeModel } from "../../../support/fake-models.ts";
import { ABLE, fetchOf, testApp, type TestApp } from "../../../support/test-app.ts";
import { clientOf } from "./message-client.ts";

const ANTHROPIC = { "anthropic-version": "2023-06-01" };

function withModels(count: number): TestApp {
  const all = testApp();
  all.models.known.clear();
  for (let number = 0; number < count; number += 1)
    all.models.known.set(`m${number}`, fakeModel({ alias: `m${number}` }));
  return all;
}

describe("the model list for Anthropic clients", () => {
  test("is paged forwards to the last model", async () => {
    const ids: string[] = [];
    for await (const { id } of clientOf(withModels(45)).models.list()) ids.push(id);
    expect(ids).toEqual(Array.from({ length: 45 }, (_, number) => `m${number}`));
  });

  test("is paged backwards from a cursor", async () => {
    const client = clientOf(withModels(5));
    const page = await client.models.list({ before_id: "m4", limit: 3 });
    expect(page.data.map(({ id }) => id)).toEqual(["m1", "m2", "m3"]);
    expect(page).toMatchObject({ has_more: true, first_id: "m1", last_id: "m3" });
    const first = await page.getNextPage();
    expect(first.data.map(({ id }) => id)).toEqual(["m0"]);
    expect(first.has_more).toBe(false);
  });

  test("reports the capabilities of each model", async () => {
    const all = testApp();
    const model = await clientOf(all).models.retrieve("fake");
    expect(anthropicModelSchema.strict().parse(model)).toEqual(model);
    expect(model).toMatchObject({
      type: "model",
      id: "fake",
      display_name: "Fake",
      created_at: "2026-01-02T00:00:00.000Z",
      max_input_tokens: 2048,
      lifecycle: "active",
      capabilities: {
        image_input: { supported: true },
        pdf_input: { supported: false },
        thinking: { supported: true, types: { enabled: { supported: true } } },
      },
    });
    all.models.known.set("fake", fakeModel());
    expect(await clientOf(all).models.retrieve("fake")).toMatchObject({
      capabilities: { thinking: { supported: false, types: { adaptive: { supported: true } } } },
    });
  });

  test("omits models that are still being downloaded", async () => {
    const all = testApp();
    all.models.known.set("coming", { ...ABLE, alias: "coming", state: "downloading" });
    expect((await clientOf(all).models.list()).data.map(({ id }) => id)).toEqual(["fake"]);
  });

  test("reports errors in this API's format", async () => {
    const client = clientOf(testApp());
    const missing = await client.models.retrieve("none").catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(NotFoundError);
    expect(missing).toMatchObject({ error: { type: "error", error: { type: "not_found_error" } } });
    await expect(client.models.list({ limit: 0 })).rejects.toThrow(BadRequestError);
    await expect(client.models.list({ after_id: "none" })).rejects.toThrow("after_id: no model");
    await expect(client.models.list({ after_id: "fake", before_id: "fake" })).rejects.toThrow("send either");
    const locked = clientOf(testApp({ config: { api_keys: ["secret"] } }));
    await expect(locked.models.list()).rejects.toThrow(AuthenticationError);
  });

  test.for([
    ["a version and a bearer token", { ...ANTHROPIC, authorization: "Bearer any" }],
    ["a key alone", { "x-api-key": "any" }],
  ] as const)("recognizes Anthropic clients by %s", async ([, headers]) => {
    const answer = await testApp().app.request("/v1/models", { headers });
    expect(anthropicModelListSchema.parse(await answer.json()).data).toHaveLength(1);
  });

  test("is the same under the /ollama prefix", async () => {
    const all = testApp();
    const client = new Anthropic({
      baseURL: "http://daybreak.test/ollama",
      apiKey: "any",
      fetch: fetchOf(all),
      maxRetries: 0,
    });
    expect((await client.models.list()).data).toHaveLength(1);
    await expect(client.models.retrieve("none")).rejects.toThrow(NotFoundError);
  });
});

test("an OpenAI client gets OpenAI's model list, even with an additional x-api-key", async () => {
  const all = testApp();
  const client = new OpenAI({
    baseURL: "http://daybreak.test/v1",
    apiKey: "any",
    fetch: fetchOf(all),
    maxRetries: 0,
    defaultHeaders: { "x-api-key": "any" },
  });
  expect(await client.models.retrieve("fake")).toMatchObject({ object: "model", owned_by: "daybreak" });
  expect((await client.models.list()).data).toMatchObject([{ object: "model", id: "fake" }]);
  await expect(client.models.retrieve("none")).rejects.toMatchObject({ code: "model_not_found" });
  expect(await (await all.app.request("/v1/models")).json()).toMatchObject({ object: "list" });
});
