import fs from "node:fs";
import { Ollama } from "ollama";
import OpenAI, { BadRequestError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { postJson } from "../support/post-json.ts";
import { addModel, removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyLlama, tokenId } from "../support/tiny-models.ts";

const MODEL = tinyLlama({ words: ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"] });
const model = "coder";
const prompt = "once upon <b>";
const suffix = "the end";
const SETTINGS = { model, max_tokens: 6, temperature: 0, seed: 1 };

const folder = temporaryFolder();
let daemon: TestDaemon;
let client: OpenAI;

beforeAll(async () => {
  daemon = await sharedDaemon();
  await addModel(daemon, model, `FROM ${writeModel(folder, "coder", MODEL)}\n`);
  client = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
});

afterAll(async () => {
  await removeModel(daemon, model);
  fs.rmSync(folder, { recursive: true });
});

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await postJson(`${daemon.url}${path}`, body);
  expect(answer.status).toBe(200);
  const json: unknown = await answer.json();
  return Object(json);
}

async function tokenize(content: string): Promise<number[]> {
  const { tokens } = await post("/tokenize", { model, content, parse_special: false });
  return Array.isArray(tokens) ? tokens : [];
}

/** Prompt of the model: BOS, the prefix, the suffix, and the token that asks for the middle. */
async function expectedIds(): Promise<number[]> {
  return [
    tokenId(MODEL, "<s>"),
    tokenId(MODEL, "<fim_prefix>"),
    ...(await tokenize(prompt)),
    tokenId(MODEL, "<fim_suffix>"),
    ...(await tokenize(suffix)),
    tokenId(MODEL, "<fim_middle>"),
  ];
}

describe("a suffix", () => {
  test("makes the model fill in the text before it", async () => {
    const ids = await expectedIds();
    const wanted = await client.completions.create({ ...SETTINGS, prompt: ids, logprobs: 3 });
    expect(wanted.usage?.prompt_tokens).toBe(ids.length);
    const filled = await client.completions.create({ ...SETTINGS, prompt, suffix, logprobs: 3 });
    expect(filled.usage?.prompt_tokens).toBe(ids.length);
    // A cached prompt is not computed again, so sums may be rounded differently.
    const [one, other] = [filled.choices[0]!, wanted.choices[0]!];
    expect(one.text).toBe(other.text);
    expect(one.logprobs?.tokens).toEqual(other.logprobs?.tokens);
    for (const [index, logprob] of one.logprobs!.token_logprobs!.entries())
      expect(logprob).toBeCloseTo(other.logprobs!.token_logprobs![index]!, 3);
    const plain = await client.completions.create({ ...SETTINGS, prompt, logprobs: 3 });
    expect(
      Math.abs(plain.choices[0]!.logprobs!.token_logprobs![0]! - other.logprobs!.token_logprobs![0]!),
    ).toBeGreaterThan(0.01);
  });

  test("gives the same answer streamed", async () => {
    const whole = await client.completions.create({ ...SETTINGS, prompt, suffix });
    let streamed = "";
    for await (const { choices } of await client.completions.create({
      ...SETTINGS,
      prompt,
      suffix,
      stream: true,
    })) {
      streamed += choices[0]?.text ?? "";
    }
    expect(streamed).toBe(whole.choices[0]?.text);
  });

  test("works in Ollama's API, where the capability is named insert", async () => {
    const ollama = new Ollama({ host: `${daemon.url}/ollama` });
    expect((await ollama.show({ model })).capabilities).toContain("insert");
    const options = { num_predict: 6, temperature: 0, seed: 1 };
    const { response, prompt_eval_count: tokens } = await ollama.generate({ model, prompt, suffix, options });
    const wanted = await client.completions.create({ ...SETTINGS, prompt: await expectedIds() });
    expect(response).toBe(wanted.choices[0]?.text);
    expect(tokens).toBe(wanted.usage?.prompt_tokens);
  });

  test("is refused by a model that cannot fill in the middle", async () => {
    const refused = client.completions.create({ ...SETTINGS, model: "daybreak-mini", prompt, suffix });
    await expect(refused).rejects.toThrow(BadRequestError);
    await expect(refused).rejects.toMatchObject({ param: "suffix", code: "unsupported_feature" });
  });
});
