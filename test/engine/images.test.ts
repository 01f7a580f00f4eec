import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { ContentPart } from "../../src/engine/protocol/generation.ts";
import {
  chatRequest,
  collect,
  doneOf,
  engineSpec,
  NEVER,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama, tinyProjector } from "../support/tiny-models.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { animatedWebp, losslessWebp, WEBP_SIZE } from "../support/tiny-webp.ts";
import { generated } from "../support/generated.ts";

const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ words: CHATML_WORDS }));
const projectorFile = writeModel(folder, "projector", tinyProjector());
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** 32 pixels in patches of 8 make 4 times 4 tokens. */
const IMAGE_TOKENS = 16;
const image: ContentPart = { type: "image", data: tinyPng(32, 32) };
const text: ContentPart = { type: "text", text: "what is it" };

describe("a model with a vision projector", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(modelFile, { projectorFile, chatTemplate: CHATML_TEMPLATE }));
  });
  afterAll(() => engine.close());

  async function promptTokens(parts: ContentPart[]): Promise<number> {
    return doneOf(await collect(generated(engine, chatRequest(parts), NEVER))).usage.promptTokens;
  }

  test("reads images before, behind and between texts", async () => {
    expect(engine.info.hasImageInput).toBe(true);
    const without = await promptTokens([text]);
    for (const parts of [
      [image, text],
      [text, image],
      [text, image, text, image],
    ]) {
      const images = parts.filter((part) => part === image).length;
      expect(await promptTokens(parts)).toBeGreaterThanOrEqual(without + images * IMAGE_TOKENS);
    }
  });

  test.each([
    ["still", losslessWebp()],
    ["animated", animatedWebp()],
  ])("reads %s WebP images like PNG images", async (_, data) => {
    const { width, height } = WEBP_SIZE;
    const png = await promptTokens([{ type: "image", data: tinyPng(width, height) }, text]);
    expect(await promptTokens([{ type: "image", data }, text])).toBe(png);
  });

  test.each([
    ["a damaged WebP image", losslessWebp().fill(255, 25)],
    ["junk", new Uint8Array(50)],
    ["nothing", new Uint8Array(0)],
    ["half an image", tinyPng(32, 32).subarray(0, 60)],
  ])("refuses %s instead of an image and continues to serve", async (_, data) => {
    const request = chatRequest([{ type: "image", data }, text]);
    await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
      code: "invalid_parameter",
    });
    expect(await promptTokens([image, text])).toBeGreaterThan(IMAGE_TOKENS);
  });

  test("refuses more images than fit into the context, with both numbers", async () => {
    const request = chatRequest([...Array.from({ length: 40 }, () => image), text]);
    await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringMatching(/\d{3,} tokens.* 512 tokens/),
    });
  });
});

test("an image at the end of the prompt gets text behind it, because llama.cpp would abort", async () => {
  const bare = "{%- for message in messages %}{{ message.content }}{% endfor %}";
  const engine = await startEngine(engineSpec(modelFile, { projectorFile, chatTemplate: bare }));
  const { usage } = doneOf(await collect(generated(engine, chatRequest([text, image]), NEVER)));
  expect(usage.promptTokens).toBeGreaterThan(IMAGE_TOKENS);
  await engine.close();
});

describe("a template that trims messages and adds nothing", () => {
  const trimming = "{%- for message in messages %}{{ message.content | trim }}{% endfor %}";
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(modelFile, { projectorFile, chatTemplate: trimming }));
  });
  afterAll(() => engine.close());

  test.each([
    ["an image", [text, image]],
    ["an image and blanks", [text, image, { type: "text", text: " \n" } as const]],
  ])("refuses a chat that ends with %s and continues to serve", async (_, parts) => {
    await expect(collect(generated(engine, chatRequest(parts), NEVER))).rejects.toMatchObject({
      code: "invalid_parameter",
      message: expect.stringMatching(/add text after it/),
    });
    const { usage } = doneOf(await collect(generated(engine, chatRequest([image, text]), NEVER)));
    expect(usage.promptTokens).toBeGreaterThan(IMAGE_TOKENS);
  });
});

test("an abort of llama.cpp ends the engine with a reason", async () => {
  // The template writes text behind one message but not behind two.
  const fickle =
    "{%- for message in messages %}{{ message.content | trim }}{% endfor %}{% if messages | length < 2 %}end{% endif %}";
  const engine = await startEngine(engineSpec(modelFile, { projectorFile, chatTemplate: fickle }));
  const messages = [
    { role: "user", content: [text] },
    { role: "user", content: [text, image] },
  ] as const;
  const request = chatRequest(
    [],
    {},
    { messages: messages.map(({ role, content }) => ({ role, content: [...content] })) },
  );
  await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
    code: "engine_crashed",
    message: expect.stringMatching(/failed an internal check/),
  });
  expect(await engine.exited).toMatchObject({
    expected: false,
    reason: expect.stringMatching(/GGML_ASSERT/),
  });
});

test("a projector that would make llama.cpp divide by zero is refused", async () => {
  const { metadata, tensors } = tinyProjector();
  const zero = tensors.with(10, { ...tensors[10]!, shape: [32, 31, 0] });
  const empty = writeModel(folder, "empty", { metadata, tensors: zero });
  await expect(startEngine(engineSpec(modelFile, { projectorFile: empty }))).rejects.toMatchObject({
    code: "invalid_model_file",
    message: "The model file cannot be used: the values in its header are inconsistent.",
  });
});

test("a projector that does not fit the model is refused", async () => {
  const misfit = writeModel(folder, "misfit", tinyProjector({ textEmbedding: 128 }));
  await expect(startEngine(engineSpec(modelFile, { projectorFile: misfit }))).rejects.toMatchObject({
    code: "invalid_model_file",
  });
});
