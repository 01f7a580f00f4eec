import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { beforeAll, expect, test } from "vitest";
import { GREEDY } from "../support/certain-requests.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const messages = [{ role: "user" as const, content: "Hello" }];

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

test("a batch of OpenAI's client has the answers of single requests", async () => {
  const client = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
  const body = { model, messages, max_tokens: 4, ...GREEDY };
  const line = { custom_id: "one", method: "POST", url: "/v1/chat/completions", body };
  const file = await client.files.create({
    file: await toFile(Buffer.from(JSON.stringify(line)), "in.jsonl"),
    purpose: "batch",
  });
  const { id } = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  const status = async (): Promise<string> => (await client.batches.retrieve(id)).status;
  await expect.poll(status, { interval: 20 }).toBe("completed");
  const { output_file_id: output } = await client.batches.retrieve(id);
  const answered: { response: { body: OpenAI.ChatCompletion } } = JSON.parse(
    await (await client.files.content(output ?? "")).text(),
  );
  const asked = await client.chat.completions.create(body);
  expect(answered.response.body.choices).toEqual(asked.choices);
});

test("a batch of Anthropic's client has the answers of single requests", async () => {
  const client = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
  const params = { model, messages, max_tokens: 4, temperature: 0 };
  const { id } = await client.messages.batches.create({ requests: [{ custom_id: "one", params }] });
  const status = async (): Promise<string> => (await client.messages.batches.retrieve(id)).processing_status;
  await expect.poll(status, { interval: 20 }).toBe("ended");
  const asked = await client.messages.create(params);
  for await (const { custom_id: custom, result } of await client.messages.batches.results(id)) {
    expect(custom).toBe("one");
    expect(result).toMatchObject({ type: "succeeded", message: { content: asked.content } });
  }
});
