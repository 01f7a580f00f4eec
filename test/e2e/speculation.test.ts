import fs from "node:fs";
import OpenAI from "openai";
import { beforeAll, expect, test } from "vitest";
import { agreeingPair } from "../support/agreeing-pair.ts";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

/** Model whose draft model always predicts the right tokens. */
const MODEL = "guessing";
const REQUEST = { model: MODEL, prompt: "Hello! Who are you?", temperature: 0, max_tokens: 12, raw: true };

let daemon: TestDaemon;

async function post<Answer>(route: string, body: object): Promise<Answer> {
  const answer = await postJson(`${daemon.url}${route}`, body);
  const text = await answer.text();
  expect(text).not.toContain('"error"');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test says what it expects
  return JSON.parse(text.trimEnd().split("\n").at(-1) ?? "") as Answer;
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
}

beforeAll(async () => {
  daemon = await sharedDaemon();
  const folder = temporaryFolder();
  const pair = agreeingPair();
  const model = writeModel(folder, "model", pair.model);
  const draft = writeModel(folder, "draft", pair.draft);
  await post("/api/models/create", { alias: MODEL, modelfile: `FROM ${model}\nDRAFT ${draft}\n` });
  return async () => {
    await fetch(`${daemon.url}/api/models/${MODEL}`, { method: "DELETE" });
    fs.rmSync(folder, { recursive: true });
  };
});

interface NativeAnswer {
  readonly response: string;
  readonly draft_tokens?: number;
  readonly draft_tokens_accepted?: number;
}

test("a draft model of a Modelfile speculates without changing answers, and is counted in usage and metrics", async () => {
  const names = ["service_draft_tokens_total", "service_draft_tokens_accepted_total"];
  const before = await Promise.all(names.map(metric));
  const plain = await post<NativeAnswer>("/api/generate", { ...REQUEST, draft_max: 0 });
  expect(plain.draft_tokens).toBeUndefined();
  const guessed = await post<NativeAnswer>("/api/generate", REQUEST);
  expect(guessed.response).toBe(plain.response);
  expect(guessed.draft_tokens).toBeGreaterThan(0);
  expect(guessed.draft_tokens_accepted).toBeGreaterThan(0);
  const after = await Promise.all(names.map(metric));
  expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([
    guessed.draft_tokens,
    guessed.draft_tokens_accepted,
  ]);
});

test("OpenAI's client gets the accepted prediction tokens", async () => {
  const openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any" });
  const { prompt, temperature, max_tokens } = REQUEST;
  const { usage } = await openai.completions.create({ model: MODEL, prompt, temperature, max_tokens });
  const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
    usage?.completion_tokens_details ?? {};
  expect(accepted).toBeGreaterThan(0);
  // Each step also has a token of the model itself.
  expect(accepted).toBeLessThan(usage?.completion_tokens ?? 0);
  expect(rejected).toEqual(expect.any(Number));
});
