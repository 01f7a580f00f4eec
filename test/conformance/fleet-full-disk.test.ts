import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NATS } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

/** Less than any stream of ours needs. */
const FULL = { jetStream: { maxFileBytes: 1e6 } };
const LINES = 3;

describe.skipIf(NATS.isMissing)(`a fleet whose NATS server has no room on its disk${NATS.note}`, () => {
  let fleet: TestFleet;
  let entrance: TestDaemon;
  let client: OpenAI;

  beforeAll(async () => {
    fleet = await TestFleet.start(FULL);
    [entrance] = await Promise.all([fleet.join("desk", { hasModel: false }), fleet.join("attic")]);
    await fleet.complete(entrance, 2, 1);
    client = new OpenAI({ baseURL: `${entrance.url}/v1`, apiKey: "any", maxRetries: 0 });
  });
  afterAll(async () => await fleet.stop());

  test("keeps responses, files and batches on the machine where they arrive, and nothing fails", async () => {
    const first = await client.responses.create({ model: FLEET_MODEL, input: "a", max_output_tokens: 16 });
    const next = { model: FLEET_MODEL, input: "b", max_output_tokens: 16, previous_response_id: first.id };
    expect((await client.responses.create(next)).status).toMatch(/completed|incomplete/);
    const text = Array.from({ length: LINES }, (_, at) => {
      const body = { model: FLEET_MODEL, max_tokens: 2, messages: [{ role: "user", content: `${at}` }] };
      return `${JSON.stringify({ custom_id: `line-${at}`, method: "POST", url: "/v1/chat/completions", body })}\n`;
    }).join("");
    const file = await client.files.create({
      file: await toFile(Buffer.from(text), "in.jsonl"),
      purpose: "batch",
    });
    expect(await client.files.content(file.id).then((each) => each.text())).toBe(text);
    const { id } = await client.batches.create({
      input_file_id: file.id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    await expect
      .poll(async () => (await client.batches.retrieve(id)).status, { timeout: 30_000, interval: 500 })
      .toBe("completed");
    const batch = await client.batches.retrieve(id);
    expect(batch.request_counts).toEqual({ total: LINES, completed: LINES, failed: 0 });
    const output = await client.files.content(batch.output_file_id ?? "");
    expect((await output.text()).trimEnd().split("\n")).toHaveLength(LINES);
  });

  test("warns once of each, in each machine's log", () => {
    const warnings = entrance
      .logs()
      .split("\n")
      .filter((line) => line.includes('"level":40'));
    const of = (text: string): string[] => warnings.filter((line) => line.includes(text));
    expect(of("keeps responses for itself alone")).toHaveLength(1);
    expect(of("files and batches are not shared now")).toHaveLength(1);
  });
});
