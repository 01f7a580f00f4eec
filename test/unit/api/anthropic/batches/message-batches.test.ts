import { rmSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import type { MessageBatch } from "@anthropic-ai/sdk/resources/messages/batches";
import { expect, onTestFinished, test } from "vitest";
import type { ConfigInput } from "../../../../../src/config/schema.ts";
import { batchApp } from "../../../../support/batch-app.ts";
import { aborted, eventsOf, type FakeEngine } from "../../../../support/fake-engine.ts";
import { ABLE } from "../../../../support/test-app.ts";

interface Setup {
  readonly client: Anthropic;
  readonly engine: FakeEngine;
  readonly ended: (id: string) => Promise<MessageBatch>;
  readonly results: (id: string) => Promise<[string, string][]>;
}

async function setUp(config: ConfigInput = {}): Promise<Setup> {
  const app = await batchApp({ answer: eventsOf("Hello"), config });
  onTestFinished(async () => {
    await app[Symbol.asyncDispose]();
    rmSync(app.folder, { recursive: true, force: true });
  });
  const { engine, fetch } = app;
  const client = new Anthropic({ baseURL: "http://localhost", apiKey: "mine", fetch, maxRetries: 0 });
  return {
    client,
    engine,
    ended: async (id) => {
      const status = async (): Promise<string> =>
        (await client.messages.batches.retrieve(id)).processing_status;
      await expect.poll(status, { interval: 5 }).toBe("ended");
      return await client.messages.batches.retrieve(id);
    },
    results: async (id) => {
      const found: [string, string][] = [];
      for await (const { custom_id: custom, result } of await client.messages.batches.results(id))
        found.push([custom, result.type]);
      return found;
    },
  };
}

function request(id: string, maxTokens = 5): Anthropic.Messages.BatchCreateParams.Request {
  const messages = [{ role: "user", content: `Say ${id}` }] as const;
  return { custom_id: id, params: { model: ABLE.alias, max_tokens: maxTokens, messages: [...messages] } };
}

test("a message batch ends with one result per request", async () => {
  const { client, ended, results } = await setUp();
  const created = await client.messages.batches.create({
    requests: [request("one"), request("two", -1), request("three")],
  });
  expect(created).toMatchObject({
    type: "message_batch",
    processing_status: "in_progress",
    request_counts: { processing: 3, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    ended_at: null,
    results_url: null,
  });
  const batch = await ended(created.id);
  expect(batch.request_counts).toEqual({ processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 });
  expect(batch.results_url).toBe(`http://localhost/v1/messages/batches/${batch.id}/results`);
  expect(await results(batch.id)).toEqual([
    ["one", "succeeded"],
    ["two", "errored"],
    ["three", "succeeded"],
  ]);
  const all = [];
  for await (const line of await client.messages.batches.results(batch.id)) all.push(line.result);
  expect(all[0]).toMatchObject({ message: { type: "message", content: [{ type: "text", text: "Hello" }] } });
  expect(all[1]).toMatchObject({ error: { type: "error", error: { type: "invalid_request_error" } } });
});

test("rejects a batch with malformed requests", async () => {
  const { client } = await setUp({ batches: { max_lines: 2 } });
  const create = async (...requests: Anthropic.Messages.BatchCreateParams.Request[]): Promise<unknown> =>
    await client.messages.batches.create({ requests });
  await expect(create()).rejects.toMatchObject({ status: 400 });
  await expect(create(request("one"), request("one"))).rejects.toThrow("requests.1.custom_id");
  await expect(create(request("no spaces"))).rejects.toThrow("custom_id");
  await expect(create(request("a"), request("b"), request("c"))).rejects.toThrow("batches.max_lines");
  const streamed = { ...request("one").params, stream: true };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  await expect(create({ custom_id: "one", params: streamed as never })).rejects.toThrow("stream");
});

test("a canceled batch reports the requests that did not run as canceled, and can be deleted", async () => {
  const { client, engine, ended, results } = await setUp({ models: { slots: 1 } });
  const isRunning = Promise.withResolvers<void>();
  engine.script = async function* (_request, signal) {
    isRunning.resolve();
    await aborted(signal);
    yield* eventsOf("never");
  };
  const { id } = await client.messages.batches.create({ requests: [request("one"), request("two")] });
  await isRunning.promise;
  await expect(client.messages.batches.delete(id)).rejects.toMatchObject({ status: 409 });
  await expect(client.messages.batches.results(id)).rejects.toThrow("No batch `results_url`");
  expect(await client.messages.batches.cancel(id)).toMatchObject({ processing_status: "canceling" });
  const batch = await ended(id);
  expect(batch.request_counts.canceled).toBe(2);
  expect(batch.cancel_initiated_at).not.toBeNull();
  expect(await results(id)).toEqual([
    ["one", "canceled"],
    ["two", "canceled"],
  ]);
  expect(await client.messages.batches.delete(id)).toEqual({ id, type: "message_batch_deleted" });
  await expect(client.messages.batches.retrieve(id)).rejects.toMatchObject({ status: 404 });
});

test("lists batches in pages in both directions, and only those of the request's API key", async () => {
  const { client, ended } = await setUp({ api_keys: ["mine", "yours"] });
  const made: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { id } = await client.messages.batches.create({ requests: [request("one")] });
    await ended(id);
    made.unshift(id);
  }
  const listed: string[] = [];
  for await (const { id } of client.messages.batches.list({ limit: 2 })) listed.push(id);
  expect(listed).toEqual(made);
  const before = await client.messages.batches.list({ limit: 1, before_id: made[2] ?? "" });
  expect(before.data.map(({ id }) => id)).toEqual([made[1]]);
  expect(before.has_more).toBe(true);
  const other = client.withOptions({ apiKey: "yours" });
  expect((await other.messages.batches.list()).data).toEqual([]);
  await expect(other.messages.batches.retrieve(made[0] ?? "")).rejects.toMatchObject({ status: 404 });
});
