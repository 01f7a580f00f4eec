import { beforeAll, describe, expect, test } from "vitest";
import { completionChunkSchema } from "../../src/api/openai/completion-answer.ts";
import { GREEDY } from "../support/certain-requests.ts";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

const CHAT = { messages: [{ role: "user", content: "Hello" }], max_tokens: 12 };
const GRAMMAR = 'root ::= "yes" | "no"';

async function ask<Answer>(path: string, body: object): Promise<Answer> {
  const answer = await postJson(`${daemon.url}${path}`, body);
  const text = await answer.text();
  expect(text).not.toContain('"error"');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test says what it expects
  return JSON.parse(text) as Answer;
}

interface Completion {
  readonly choices: readonly {
    readonly text: string;
    readonly finish_reason: string;
    readonly limited_by?: string;
    readonly logprobs: { readonly top_logprobs: readonly Record<string, number>[] } | null;
  }[];
}

const complete = (body: object): Promise<Completion> => ask("/v1/completions", body);

describe("llama.cpp's fields", () => {
  test("a grammar is enforced in every API", async () => {
    const chat = await ask<{ choices: { message: { content: string } }[] }>("/v1/chat/completions", {
      ...CHAT,
      grammar: GRAMMAR,
    });
    expect(chat.choices[0]?.message.content).toMatch(/^(?:yes|no)$/);
    const { response } = await ask<{ response: string }>("/api/generate", { prompt: "hi", grammar: GRAMMAR });
    expect(response).toMatch(/^(?:yes|no)$/);
    const { content } = await ask<{ content: { text: string }[] }>("/v1/messages", {
      ...CHAT,
      grammar: GRAMMAR,
    });
    expect(content[0]?.text).toMatch(/^(?:yes|no)$/);
  });

  test("vLLM's fields are enforced", async () => {
    const chosen = await complete({ prompt: "one", max_tokens: 12, guided_choice: ["red", "green"] });
    expect(chosen.choices[0]?.text).toMatch(/^(?:red|green)$/);
    const matching = await complete({ prompt: "one", max_tokens: 12, guided_regex: "[a-c]{2}-\\d" });
    expect(matching.choices[0]?.text).toMatch(/^[a-c]{2}-\d$/);
    const lark = 'start: "(" start ")" | "x"';
    const nested = await complete({
      prompt: "one",
      max_tokens: 30,
      structured_outputs: { grammar: lark },
      logit_bias: {},
    });
    expect(nested.choices[0]?.text).toMatch(/^\(*x?\)*$/);
  });

  test("samplers are applied", async () => {
    const body = { prompt: "one two one two one two one two", max_tokens: 24, ...GREEDY };
    const plain = await complete(body);
    const top = await complete({ ...body, top_k: 1, temperature: 2, samplers: ["top_k", "temperature"] });
    const dry = {
      dry_multiplier: 5,
      dry_allowed_length: 1,
      dry_sequence_breakers: ["."],
      dry_penalty_last_n: -1,
    };
    const varied = await complete({ ...body, ...dry });
    expect(top.choices[0]?.text).toBe(plain.choices[0]?.text);
    expect(varied.choices[0]?.text).not.toBe(plain.choices[0]?.text);
  });

  test("n_probs reports alternatives", async () => {
    const { choices } = await complete({ prompt: "one", max_tokens: 2, n_probs: 3 });
    expect(choices[0]?.logprobs?.top_logprobs.map((top) => Object.keys(top).length)).toEqual([3, 3]);
  });

  test("each chunk has tokens and timings when requested", async () => {
    const answer = await postJson(`${daemon.url}/v1/completions`, {
      prompt: "one",
      max_tokens: 6,
      stream: true,
      timings_per_token: true,
      ...GREEDY,
    });
    const frames = (await answer.text()).split("\n\n").filter((frame) => frame.startsWith("data: {"));
    const chunks = frames.map((frame) =>
      completionChunkSchema.parse(JSON.parse(frame.slice("data: ".length))),
    );
    const reported = chunks.map(({ timings }) => timings?.predicted_n ?? 0);
    expect(reported).toEqual(reported.toSorted((one, other) => one - other));
    expect([reported[0], reported.at(-1)]).toEqual([1, 6]);
    expect(chunks[1]?.timings?.predicted_ms).toBeGreaterThan(0);
  });

  test("an answer can be limited in time", async () => {
    const { choices } = await complete({
      prompt: "one\n",
      max_tokens: 400,
      grammar: 'root ::= ("a\\n")+',
      t_max_predict_ms: 1,
    });
    expect(choices[0]).toMatchObject({ finish_reason: "length", limited_by: "time" });
  });
});
