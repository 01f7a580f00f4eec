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
import { generated } from "../support/generated.ts";
import { tinyAudioProjector, tinyWav } from "../support/tiny-audio.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../support/tiny-models.ts";

const folder = temporaryFolder();
const modelFile = writeModel(folder, "model", tinyLlama({ words: CHATML_WORDS, context: 2048 }));
const projectorFile = writeModel(folder, "projector", tinyAudioProjector());
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Half of Whisper's 1500 positions for each 30 seconds, begun ones included. */
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

  test("hears recordings before, behind and between texts", async () => {
    expect(engine.info).toMatchObject({ hasAudioInput: true, hasImageInput: false });
    const without = await promptTokens([text]);
    for (const parts of [
      [audio, text],
      [text, audio],
      [text, audio, text, audio],
    ]) {
      const recordings = parts.filter((part) => part === audio).length;
      expect(await promptTokens(parts)).toBeGreaterThanOrEqual(without + recordings * CHUNK_TOKENS);
    }
  });
});
