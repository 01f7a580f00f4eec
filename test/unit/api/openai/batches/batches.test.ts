import { rmSync } from "node:fs";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { expect, onTestFinished, test } from "vitest";
import type { ConfigInput } from "../../../../../src/config/schema.ts";
import { ServiceError } from "../../../../../src/errors/service-error.ts";
import { type BatchApp, batchApp } from "../../../../support/batch-app.ts";
import { aborted, eventsOf } from "../../../../support/fake-engine.ts";
import { ABLE } from "../../../../support/test-app.ts";

const CHAT = "/v1/chat/completions";

interface Setup extends BatchApp {
  readonly client: OpenAI;
  /** Uploads lines, creates a batch, and waits for its end. */
  readonly run: (lines: readonly unknown[], endpoint?: string) => Promise<Batch>;
  readonly create: (lines: readonly unknown[], endpoint?: string) => Promise<Batch>;
  readonly ended: (id: string) => Promise<Batch>;
  readonly content: (id: string | undefined) => Promise<OutputLine[]>;
}

interface OutputLine {
  readonly custom_id: string;
  readonly response: { status_code: number; request_id: string; body: Record<string, unknown> } | null;
  readonly error: { code: string } | null;
}

async function setUp(config: ConfigInput = {}, apiKey = "any"): Promise<Setup> {
  const app = await batchApp({ answer: eventsOf("Hello"), config });
  onTestFinished(async () => {
    await app[Symbol.asyncDispose]();
    rmSync(app.folder, { recursive: true, force: true });
  });
  const client = new OpenAI({ baseURL: "http://localhost/v1", apiKey, fetch: app.fetch, maxRetries: 0 });
  return { ...app, ...helpers(client), client };
}

function helpers(client: OpenAI): Pick<Setup, "run" | "create" | "ended" | "content"> {
  const create: Setup["create"] = async (lines, endpoint = CHAT) => {
    const text = lines.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("\n");
    const file = await client.files.create({
      file: await toFile(Buffer.from(text), "in.jsonl"),
      purpose: "batch",
    });
    return await client.batches.create({
      input_file_id: file.id,
      // Tests also pass unsupported endpoints.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      endpoint: endpoint as "/v1/responses",
      completion_window: "24h",
    });
  };
  const ended: Setup["ended"] = async (id) =>
    await expect
      .poll(async () => await client.batches.retrieve(id), { interval: 5 })
      .toMatchObject({ status: expect.stringMatching(/^(completed|failed|expired|cancelled)$/) })
      .then(async () => await client.batches.retrieve(id));
  return {
    create,
    ended,
    run: async (lines, endpoint) => await ended((await create(lines, endpoint)).id),
    content: async (id) => {
      const text = await (await client.files.content(id ?? "")).text();
      return text
        .trimEnd()
        .split("\n")
        .map((each) => JSON.parse(each));
    },
  };
}

function line(id: string, body: object = {}): object {
  const messages = [{ role: "user", content: `Say ${id}` }];
  return { custom_id: id, method: "POST", url: CHAT, body: { model: ABLE.alias, messages, ...body } };
}

test("a batch answers each line like its route, and sums the usage", async () => {
  const { run, content, client } = await setUp();
  const batch = await run([line("one"), "", line("two"), line("three", { messages: "no list" })]);
  expect(batch).toMatchObject({
    object: "batch",
    status: "completed",
    endpoint: CHAT,
    completion_window: "24h",
    errors: null,
    request_counts: { total: 3, completed: 2, failed: 1 },
    usage: { input_tokens: 14, output_tokens: 6, total_tokens: 20 },
  });
  expect(batch.expires_at).toBe(batch.created_at + 24 * 3600);
  const answers = await content(batch.output_file_id);
  expect(answers.map(({ custom_id: id }) => id)).toEqual(["one", "two"]);
  expect(answers[0]?.response).toMatchObject({
    status_code: 200,
    body: { object: "chat.completion", choices: [{ message: { content: "Hello" } }] },
  });
  const [failure] = await content(batch.error_file_id);
  expect(failure).toMatchObject({
    custom_id: "three",
    error: null,
    response: { status_code: 400, body: { error: { code: "invalid_parameter", param: "messages" } } },
  });
  const files = await client.files.list();
  expect(files.data.map(({ purpose }) => purpose)).toEqual(["batch_output", "batch_output", "batch"]);
});

test("a batch with invalid lines fails with their numbers, and runs nothing", async () => {
  const { run, engine } = await setUp();
  const batch = await run([
    line("one"),
    "{not json",
    line("one"),
    { ...line("four"), method: "GET" },
    { ...line("five"), url: "/v1/embeddings" },
    { method: "POST", url: CHAT, body: {} },
    { custom_id: "seven", method: "POST", url: CHAT },
    line("eight", { stream: true }),
    "[1]",
  ]);
  expect(batch).toMatchObject({ status: "failed", output_file_id: null, request_counts: { total: 0 } });
  expect(batch.errors?.data?.map(({ line: number, code, param }) => [number, code, param])).toEqual([
    [2, "invalid_json_line", null],
    [3, "duplicate_custom_id", "custom_id"],
    [4, "invalid_method", "method"],
    [5, "invalid_url", "url"],
    [6, "missing_required_parameter", "custom_id"],
    [7, "missing_required_parameter", "body"],
    [8, "invalid_request", "body.stream"],
    [9, "invalid_json_line", null],
  ]);
  expect(engine.requests).toEqual([]);
});

test("accepts a byte order mark only at the start of the file", async () => {
  const { run, content } = await setUp();
  const marked = (id: string): string => `\uFEFF${JSON.stringify(line(id))}`;
  const batch = await run([marked("one"), line("two")]);
  expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
  expect(await content(batch.output_file_id)).toHaveLength(2);
  const { status, errors } = await run([line("one"), marked("two"), marked("three")]);
  expect(status).toBe("failed");
  expect(errors?.data).toMatchObject([
    { line: 2, code: "invalid_json_line", message: expect.stringContaining("byte order mark") },
    { line: 3 },
  ]);
});

test("rejects too many lines, too long lines and empty files", async () => {
  const { run } = await setUp({ batches: { max_lines: 2 }, http: { body_limit: 1024 } });
  const codes = async (lines: readonly unknown[]): Promise<unknown> =>
    (await run(lines)).errors?.data?.map(({ code }) => code);
  expect(await codes([line("one"), line("two"), line("three")])).toEqual(["too_many_lines"]);
  expect(await codes([line("one", { user: "x".repeat(2000) })])).toEqual(["line_too_long"]);
  expect(await codes(["", ""])).toEqual(["empty_file"]);
});

test("retries a line after a temporary failure, but not after a permanent one", async () => {
  const { run, engine, content } = await setUp();
  let calls = 0;
  engine.script = async function* () {
    calls += 1;
    if (calls === 1) throw new ServiceError("engine_crashed", "It ended.");
    yield* eventsOf("Hello");
  };
  const batch = await run([line("one"), line("two", { model: "no-such-model" })]);
  expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 });
  expect(calls).toBe(2);
  const [failure] = await content(batch.error_file_id);
  expect(failure?.response).toMatchObject({ status_code: 404, body: { error: { code: "model_not_found" } } });
});

test("a cancelled batch keeps finished answers, and reports all other lines as cancelled", async () => {
  const { create, ended, engine, client, content } = await setUp({ models: { slots: 1 } });
  const answered = Promise.withResolvers<void>();
  engine.script = async function* (_request, signal) {
    if (engine.requests.length > 1) {
      answered.resolve();
      await aborted(signal);
    }
    yield* eventsOf("Hello");
  };
  const { id } = await create(["one", "two", "three", "four", "five"].map((name) => line(name)));
  await answered.promise;
  expect(await client.batches.cancel(id)).toMatchObject({ status: "cancelling" });
  const batch = await ended(id);
  expect(batch).toMatchObject({ status: "cancelled", request_counts: { total: 5, completed: 1, failed: 4 } });
  expect(await content(batch.output_file_id)).toHaveLength(1);
  const errors = await content(batch.error_file_id);
  expect(errors.map(({ response, error }) => [response, error?.code])).toEqual(
    Array.from({ length: 4 }, () => [null, "batch_cancelled"]),
  );
  await expect(client.batches.cancel(id)).rejects.toMatchObject({ status: 409, code: "batch_conflict" });
});

test("files and batches are only visible to their API key", async () => {
  const setup = await setUp({ api_keys: ["mine", "yours"] }, "mine");
  const batch = await setup.run([line("one")]);
  const other = setup.client.withOptions({ apiKey: "yours" });
  await expect(other.batches.retrieve(batch.id)).rejects.toMatchObject({
    status: 404,
    code: "batch_not_found",
  });
  await expect(other.batches.cancel(batch.id)).rejects.toMatchObject({ status: 404 });
  await expect(other.files.content(batch.output_file_id ?? "")).rejects.toMatchObject({ status: 404 });
  await expect(other.files.delete(batch.input_file_id)).rejects.toMatchObject({ code: "file_not_found" });
  const stolen = { input_file_id: batch.input_file_id, endpoint: CHAT, completion_window: "24h" } as const;
  await expect(other.batches.create(stolen)).rejects.toMatchObject({ status: 404 });
  expect((await other.files.list()).data).toEqual([]);
  expect((await other.batches.list()).data).toEqual([]);
  expect(batch.status).toBe("completed");
});

test("lists files and batches in pages", async () => {
  const { run, client } = await setUp();
  const made: string[] = [];
  for (let count = 0; count < 3; count += 1) made.unshift((await run([line("one")])).id);
  const listed: string[] = [];
  for await (const { id } of client.batches.list({ limit: 2 })) listed.push(id);
  expect(listed).toEqual(made);
  const first = await client.files.list({ purpose: "batch", order: "asc", limit: 2 });
  expect(first).toMatchObject({ has_more: true });
  expect(first.data).toHaveLength(2);
  await expect(client.files.list({ after: "file-unknown" })).rejects.toMatchObject({
    status: 400,
    param: "after",
  });
});

test("rejects the deletion of a running batch's file", async () => {
  const { create, ended, engine, client } = await setUp();
  const go = Promise.withResolvers<void>();
  engine.script = async function* () {
    await go.promise;
    yield* eventsOf("Hello");
  };
  const { id, input_file_id: file } = await create([line("one")]);
  await expect(client.files.delete(file)).rejects.toMatchObject({ status: 409, code: "batch_conflict" });
  go.resolve();
  await ended(id);
  expect(await client.files.delete(file)).toEqual({ id: file, object: "file", deleted: true });
  await expect(client.files.retrieve(file)).rejects.toMatchObject({ status: 404 });
});

test("rejects a batch with an unknown endpoint or completion window", async () => {
  const { create, client } = await setUp();
  await expect(create([line("one")], "/v1/moderations")).rejects.toMatchObject({
    status: 400,
    param: "endpoint",
  });
  const { data } = await client.files.list();
  const request = { input_file_id: data[0]?.id ?? "", endpoint: CHAT, completion_window: "1h" };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  await expect(client.batches.create(request as never)).rejects.toMatchObject({ param: "completion_window" });
});

test("a regular request preempts a line of a batch, which then runs again", async () => {
  const { create, ended, engine, client } = await setUp({ models: { slots: 1 } });
  const isRunning = Promise.withResolvers<void>();
  engine.script = async function* (_request, signal) {
    if (engine.requests.length === 1) {
      isRunning.resolve();
      await aborted(signal);
    }
    yield* eventsOf("Hello");
  };
  const { id } = await create([line("one")]);
  await isRunning.promise;
  const messages = [{ role: "user", content: "Now" }] as const;
  const answer = await client.chat.completions.create({ model: ABLE.alias, messages: [...messages] });
  expect(answer.choices[0]?.message.content).toBe("Hello");
  expect((await client.batches.retrieve(id)).status).toBe("in_progress");
  expect(await ended(id)).toMatchObject({ status: "completed", request_counts: { completed: 1, failed: 0 } });
});
