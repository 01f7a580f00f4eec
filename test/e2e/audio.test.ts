import fs from "node:fs";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { postJson } from "../support/post-json.ts";
import { addModel, removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyAudioProjector, tinyWav } from "../support/tiny-audio.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../support/tiny-models.ts";

/** Tokens per started 30 seconds. */
const CHUNK_TOKENS = 750;
const base64 = Buffer.from(tinyWav(0.2)).toString("base64");
const model = "listener";
const deaf = "daybreak-mini";
const text = "what is it";

const folder = temporaryFolder();
let daemon: TestDaemon;
let openai: OpenAI;

beforeAll(async () => {
  const words = { words: CHATML_WORDS, chatTemplate: CHATML_TEMPLATE, context: 1024 };
  const base = writeModel(folder, "model", tinyLlama(words));
  const projector = writeModel(folder, "projector", tinyAudioProjector());
  daemon = await sharedDaemon();
  const modelfile = `FROM ${base}\nVISION_PROJECTOR ${projector}\nPARAMETER num_ctx 1024\n`;
  await addModel(daemon, model, modelfile);
  openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
});
afterAll(async () => {
  await removeModel(daemon, model);
  fs.rmSync(folder, { recursive: true });
});

function post(path: string, body: object): Promise<Response> {
  return postJson(`${daemon.url}${path}`, body);
}

function wav(): Promise<File> {
  return toFile(tinyWav(0.2), "speech.wav");
}

function openaiChat(name: string): Promise<OpenAI.Chat.ChatCompletion> {
  const audio = { type: "input_audio" as const, input_audio: { data: base64, format: "wav" as const } };
  return openai.chat.completions.create({
    model: name,
    max_tokens: 1,
    messages: [{ role: "user", content: [audio, { type: "text", text }] }],
  });
}

describe("a model with an audio projector reads recordings", () => {
  test("of OpenAI chats", async () => {
    expect((await openaiChat(model)).usage?.prompt_tokens).toBeGreaterThan(CHUNK_TOKENS);
  });

  test("of the native API", async () => {
    const messages = [{ role: "user", content: text, audio: [base64] }];
    const answer: { prompt_tokens: number } = await (
      await post("/api/chat", { model, max_tokens: 1, messages })
    ).json();
    expect(answer.prompt_tokens).toBeGreaterThan(CHUNK_TOKENS);
  });

  test("of Ollama clients, which send them like images", async () => {
    const messages = [{ role: "user", content: text, images: [base64] }];
    const body = { model, messages, stream: false, options: { num_predict: 1 } };
    const answer: { prompt_eval_count: number } = await (await post("/ollama/api/chat", body)).json();
    expect(answer.prompt_eval_count).toBeGreaterThan(CHUNK_TOKENS);
  });

  test("and reports the capability", async () => {
    const detail: unknown = await (await fetch(`${daemon.url}/api/models/${model}`)).json();
    expect(detail).toMatchObject({ audio_input: true, capabilities: { vision: false } });
    const shown: { capabilities: string[] } = await (await post("/ollama/api/show", { model })).json();
    expect(shown.capabilities).toContain("audio");
  });
});

describe("transcriptions", () => {
  test("return the text and token counts", async () => {
    const answer = await openai.audio.transcriptions.create({ model, file: await wav(), language: "en" });
    expect(answer).toMatchObject({ text: expect.any(String), usage: { type: "tokens" } });
  });

  test("are streamed", async () => {
    const events = await openai.audio.transcriptions.create({ model, file: await wav(), stream: true });
    let pieces = "";
    let done: string | undefined;
    for await (const event of events) {
      if (event.type === "transcript.text.delta") pieces += event.delta;
      if (event.type === "transcript.text.done") done = event.text;
    }
    expect(done).toBe(pieces);
  });

  test.each([
    ["times of words", { response_format: "verbose_json" as const }, "verbose_json"],
    ["log-probabilities", { include: ["logprobs" as const] }, "include[]"],
  ])("with %s are refused with a message", async (_, fields, words) => {
    const file = await wav();
    const asked = openai.audio.transcriptions.create({ model, file, ...fields });
    await expect(asked).rejects.toMatchObject({ status: 400, message: expect.stringContaining(words) });
  });

  test("of other files are refused with a message", async () => {
    const file = await toFile(Buffer.from("no sound"), "speech.wav");
    const asked = openai.audio.transcriptions.create({ model, file });
    await expect(asked).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("WAV, MP3 or FLAC"),
    });
  });

  test.each([
    ["JSON", { "content-type": "application/json" }, "{}", 415],
    ["a form without an end", { "content-type": "multipart/form-data; boundary=x" }, "--x\r\n", 400],
    [
      "a form of many parts",
      { "content-type": "multipart/form-data; boundary=x" },
      "--x\r\n".repeat(100),
      400,
    ],
  ])("with %s are refused", async (_, headers, body, status) => {
    const response = await fetch(`${daemon.url}/v1/audio/transcriptions`, { method: "POST", headers, body });
    expect(response.status).toBe(status);
  });
});

test("a model without an audio projector refuses recordings in every API", async () => {
  await expect(openaiChat(deaf)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("hear"),
  });
  const messages = [{ role: "user", content: text, audio: [base64] }];
  expect((await post("/api/chat", { model: deaf, messages })).status).toBe(400);
});
