import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { checkAudio } from "../../src/inference/media-data.ts";
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
import { generated } from "../support/generated.ts";
import { tinyAudioProjector, tinyFlac, tinyMp3, tinyWav } from "../support/tiny-audio.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../support/tiny-models.ts";

const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ words: CHATML_WORDS, context: 2048 }));
const projectorFile = writeModel(folder, "projector", tinyAudioProjector());
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Tokens per started 30 seconds: half of Whisper's 1500 positions. */
const CHUNK_TOKENS = 750;
const audio: ContentPart = { type: "audio", data: tinyWav(1) };
const text: ContentPart = { type: "text", text: "what is it" };

describe("a model with an audio projector", () => {
  let engine: Engine;
  beforeAll(async () => {
    const spec = engineSpec(modelFile, {
      projectorFile,
      hearsAudio: true,
      chatTemplate: CHATML_TEMPLATE,
      contextSize: 2048,
    });
    engine = await startEngine(spec);
  });
  afterAll(() => engine.close());

  async function promptTokens(parts: ContentPart[]): Promise<number> {
    return doneOf(await collect(generated(engine, chatRequest(parts), NEVER))).usage.promptTokens;
  }

  test("reads recordings before, behind and between texts", async () => {
    expect(engine.info).toMatchObject({ hasAudioInput: true, hasImageInput: false });
    const without = await promptTokens([text]);
    const around = await promptTokens([text, audio, text, audio]);
    expect(around).toBeGreaterThanOrEqual(without + 2 * CHUNK_TOKENS);
    expect(around).toBeLessThan(without + 3 * CHUNK_TOKENS);
  });

  test.each([
    ["MP3", tinyMp3(4)],
    ["FLAC", tinyFlac(2)],
    ["a short WAV file", tinyWav(0.01)],
  ])("reads %s", async (_, data) => {
    const tokens = await promptTokens([{ type: "audio", data: checkAudio(data, "file") }, text]);
    expect(tokens).toBeGreaterThan(CHUNK_TOKENS);
  });

  test("survives a damaged recording", async () => {
    const damaged = tinyFlac(2).fill(0x55, 60);
    // The decoded part is silence, or the request is refused.
    const outcome = await promptTokens([{ type: "audio", data: damaged }, text]).catch(
      (error: unknown) => error,
    );
    expect([expect.any(Number), expect.objectContaining({ code: "invalid_parameter" })]).toContainEqual(
      outcome,
    );
    expect(await promptTokens([text])).toBeLessThan(CHUNK_TOKENS);
  });

  test("refuses images", async () => {
    await expect(promptTokens([{ type: "image", data: tinyPng(8, 8) }, text])).rejects.toMatchObject({
      code: "unsupported_feature",
    });
  });
});
