import fs from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { addModel, removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama, tinyProjector } from "../support/tiny-models.ts";
import { tinyPng } from "../support/tiny-png.ts";

/** 32 pixels in patches of 8 make 4 times 4 tokens. */
const IMAGE_TOKENS = 16;
const png = tinyPng(32, 32);
const base64 = Buffer.from(png).toString("base64");
const dataUrl = `data:image/png;base64,${base64}`;
const model = "seer";
const text = "what is it";

const folder = temporaryFolder();
let daemon: TestDaemon;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  const words = { words: CHATML_WORDS, chatTemplate: CHATML_TEMPLATE };
  const base = writeModel(folder, "model", tinyLlama(words));
  const projector = writeModel(folder, "projector", tinyProjector());
  daemon = await sharedDaemon();
  await addModel(daemon, model, `FROM ${base}\nVISION_PROJECTOR ${projector}\n`);
  openai = new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: daemon.url, apiKey: "any", maxRetries: 0 });
});

afterAll(async () => {
  await removeModel(daemon, model);
  fs.rmSync(folder, { recursive: true });
});

describe("a model with a projector reads images", () => {
  /** Prompt tokens with or without an image. */
  const apis: { api: string; promptTokens: (withImage: boolean) => Promise<number | undefined> }[] = [
    {
      api: "chat completions",
      promptTokens: async (withImage) => {
        const image = { type: "image_url" as const, image_url: { url: dataUrl } };
        const content = [...(withImage ? [image] : []), { type: "text" as const, text }];
        const { usage } = await openai.chat.completions.create({
          model,
          max_tokens: 1,
          messages: [{ role: "user", content }],
        });
        return usage?.prompt_tokens;
      },
    },
    {
      api: "responses",
      promptTokens: async (withImage) => {
        const image = { type: "input_image" as const, image_url: dataUrl, detail: "auto" as const };
        const content = [...(withImage ? [image] : []), { type: "input_text" as const, text }];
        const { usage } = await openai.responses.create({
          model,
          max_output_tokens: 1,
          input: [{ role: "user", content }],
        });
        return usage?.input_tokens;
      },
    },
    {
      api: "messages",
      promptTokens: async (withImage) => {
        const source = { type: "base64" as const, media_type: "image/png" as const, data: base64 };
        const image = { type: "image" as const, source };
        const content = [...(withImage ? [image] : []), { type: "text" as const, text }];
        const { usage } = await anthropic.messages.create({
          model,
          max_tokens: 1,
          messages: [{ role: "user", content }],
        });
        return usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
      },
    },
    {
      api: "the Vercel AI SDK",
      promptTokens: async (withImage) => {
        const provider = createOpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any" });
        const image = { type: "image" as const, image: new Uint8Array(png), mediaType: "image/png" };
        const content = [...(withImage ? [image] : []), { type: "text" as const, text }];
        const { usage } = await generateText({
          model: provider.responses(model),
          maxRetries: 0,
          maxOutputTokens: 1,
          messages: [{ role: "user", content }],
        });
        return usage.inputTokens;
      },
    },
  ];

  test.for(apis)("through $api", async ({ promptTokens }) => {
    const without = await promptTokens(false);
    expect(await promptTokens(true)).toBeGreaterThanOrEqual(without! + IMAGE_TOKENS);
  });
});
