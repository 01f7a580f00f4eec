import { beforeAll, describe, expect, test } from "vitest";
import { generateAnswerSchema, generateLineSchema } from "../../src/api/wire/native.ts";
import { activeRequests } from "../support/active-requests.ts";
import { AMPLE_TOKENS, ENDLESS_LIST, GREEDY, QUESTION_TO_THINK_ABOUT } from "../support/certain-requests.ts";
import { postJson } from "../support/post-json.ts";
import { GUARDED, guardedDaemon, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const ENDLESS = { max_tokens: 1500, format: ENDLESS_LIST };
/** Prompt whose answer is longer than the limits of the tests. */
const LONG_TEXT = { type: "string", minLength: 500 };

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

function post(body: object, signal?: AbortSignal): Promise<Response> {
  return postJson(`${daemon.url}/api/generate`, body, signal);
}

async function generate(body: object) {
  const response = await post(body);
  expect(response.status).toBe(200);
  return generateAnswerSchema.parse(await response.json());
}

async function stream(body: object) {
  const response = await post({ ...body, stream: true });
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const text = await response.text();
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => generateLineSchema.parse(JSON.parse(line)));
}

async function count(metric: string): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(metric));
  return Number(line?.split(" ").at(-1));
}

describe("POST /api/generate", () => {
  test("generates at most the requested tokens", async () => {
    const answer = await generate({ prompt: "How do I load a model?", max_tokens: 8, temperature: 0 });
    expect(answer).toMatchObject({
      model: "daybreak-mini",
      done: true,
      completion_tokens: 8,
      done_reason: "length",
    });
    expect(answer.response).not.toBe("");
    expect(answer.prompt_tokens).toBeGreaterThan(4);
    expect(answer.tokens_per_second).toBeGreaterThan(0);
  });

  test("streams the same text", async () => {
    const body = { prompt: "Once upon a time", max_tokens: 12, seed: 2, format: LONG_TEXT };
    const lines = await stream(body);
    const whole = await generate(body);
    expect(lines.map(({ response }) => response).join("")).toBe(whole.response);
    expect(lines.slice(0, -1).every(({ done }) => !done)).toBe(true);
    expect(lines.at(-1)).toMatchObject({
      response: "",
      done: true,
      done_reason: whole.done_reason,
      prompt_tokens: whole.prompt_tokens,
      completion_tokens: whole.completion_tokens,
    });
    expect(lines.length).toBeGreaterThan(2);
  });

  test("sends tokens as they are generated", async () => {
    const response = await post({ prompt: "hi", ...ENDLESS, stream: true });
    const reader = response.body!.getReader();
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).not.toContain('"done":true');
    expect(await activeRequests(daemon)).toBe(1);
    await reader.cancel();
  });

  test("repeats an answer with the same seed only", async () => {
    // With 40 candidates per token, two answers of 16 tokens are not equal by chance.
    const anything = { format: LONG_TEXT, temperature: 5, top_p: 1, min_p: 0 };
    const texts: string[] = [];
    // Sequential requests, because concurrent ones round differently.
    for (const seed of [7, 7, 8]) {
      texts.push((await generate({ prompt: "hi", max_tokens: 16, ...anything, seed })).response);
    }
    expect(texts[0]).toBe(texts[1]);
    expect(texts[0]).not.toBe(texts[2]);
  });

  test("always chooses the most likely token at temperature 0", async () => {
    const body = { prompt: "hi", max_tokens: 12, temperature: 0, format: LONG_TEXT };
    expect((await generate(body)).response).toBe((await generate(body)).response);
  });

  test("stops at a stop sequence and omits it", async () => {
    const body = { prompt: "hi", max_tokens: AMPLE_TOKENS, format: { const: "one two three four" } };
    expect((await generate(body)).response).toContain("two three");
    const stopped = await generate({ ...body, stop: ["o thr"] });
    expect(stopped).toMatchObject({ done_reason: "stop", response: '"one tw' });
    const lines = await stream({ ...body, stop: ["o thr"] });
    expect(lines.map(({ response }) => response).join("")).toBe('"one tw');
  });

  test("answers in JSON that fits a schema", async () => {
    const format = {
      type: "object",
      properties: { colour: { enum: ["red", "blue"] }, sure: { type: "boolean" } },
      required: ["colour", "sure"],
      additionalProperties: false,
    };
    const { response, done_reason: reason } = await generate({
      prompt: "hi",
      max_tokens: AMPLE_TOKENS,
      ...GREEDY,
      format,
    });
    expect(reason).toBe("stop");
    expect(JSON.parse(response)).toEqual({
      colour: expect.stringMatching(/^(red|blue)$/),
      sure: expect.any(Boolean),
    });
  });

  test("returns reasoning separately, and only when requested", async () => {
    const body = { prompt: QUESTION_TO_THINK_ABOUT, max_tokens: AMPLE_TOKENS, ...GREEDY };
    const answer = await generate({ ...body, think: true });
    expect(answer.thinking).toMatch(/\w/);
    expect(answer.response).toMatch(/\w/);
    expect(answer.response).not.toContain(answer.thinking);
    expect(await generate(body)).not.toHaveProperty("thinking");
  });

  test("serves more concurrent requests than slots", async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        generate({ prompt: `Story ${index}`, max_tokens: 8, format: LONG_TEXT }),
      ),
    );
    expect(answers.map(({ completion_tokens: tokens }) => tokens)).toEqual(Array(10).fill(8));
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("cancels a streamed generation when the client disconnects", async () => {
    const client = new AbortController();
    const response = await post({ prompt: "hi", ...ENDLESS, stream: true }, client.signal);
    await response.body!.getReader().read();
    client.abort();
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("cancels a non-streamed generation when the client disconnects", async () => {
    const client = new AbortController();
    const answer = post({ prompt: "hi", ...ENDLESS }, client.signal).catch(() => undefined);
    await expect.poll(() => activeRequests(daemon)).toBe(1);
    client.abort();
    await answer;
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("counts requests and tokens", async () => {
    const names = ['service_requests_total{endpoint="generate"}', "service_tokens_generated_total"];
    const before = await Promise.all(names.map(count));
    const { completion_tokens: tokens } = await generate({ prompt: "hi", max_tokens: 5 });
    const after = await Promise.all(names.map(count));
    expect(after.map((value, index) => value - before[index]!)).toEqual([1, tokens]);
  });
});

describe("errors of POST /api/generate", () => {
  test.for<[string, object, number, string]>([
    ["no prompt", {}, 400, "invalid_parameter"],
    ["a field out of range", { prompt: "hi", temperature: -1 }, 400, "invalid_parameter"],
    ["an unknown model", { prompt: "hi", model: "no-such-model" }, 404, "model_not_found"],
    [
      "an image for a model without vision",
      { prompt: "hi", images: ["iVBORw0KGgo="] },
      400,
      "unsupported_feature",
    ],
    ["a prompt beyond the context", { prompt: "word ".repeat(4000) }, 400, "context_length_exceeded"],
  ])("refuses %s", async ([, body, status, code]) => {
    const response = await post(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({
      error: { message: expect.any(String), type: expect.any(String), code },
    });
  });

  test("refuses broken JSON", async () => {
    const response = await fetch(`${daemon.url}/api/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{",
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request", code: "invalid_json" } });
  });
});

describe("a daemon with few slots and no queue", () => {
  let narrow: TestDaemon;
  beforeAll(async () => {
    narrow = await guardedDaemon();
  });

  function ask(body: object): Promise<Response> {
    return fetch(`${narrow.url}/api/generate`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${GUARDED.key}` },
      body: JSON.stringify({ prompt: "hi", ...body }),
    });
  }

  test("answers 503 with Retry-After when all slots are busy", async () => {
    const asked = Array.from({ length: GUARDED.slots }, () => ask({ ...ENDLESS, stream: true }));
    const running = (await Promise.all(asked)).map(({ body }) => body!.getReader());
    for (const reader of running) expect((await reader.read()).done).toBe(false);
    const refused = await ask({ max_tokens: 2 });
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ error: { type: "overloaded", code: "overloaded" } });
    for (const reader of running) expect((await reader.read()).done).toBe(false);
    await running[0]!.cancel();
    await expect.poll(async () => (await ask({ max_tokens: 2 })).status).toBe(200);
    for (const reader of running) await reader.cancel();
    await expect.poll(() => activeRequests(narrow, GUARDED.key)).toBe(0);
  });
});
