import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationRequest } from "../../src/engine/protocol/generation.ts";
import { byteLevelLlama } from "../support/byte-level-llama.ts";
import {
  collect,
  doneOf,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  startStockEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import type { GgufFile } from "../support/gguf-writer.ts";
import {
  type Form,
  FORMS,
  IMPOSSIBLE_GRAMMARS,
  schemaForm,
  wildRequest,
} from "../support/structured/forms.ts";
import { outcomeOf, type Outcome } from "../support/structured/outcome.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama, tokenId } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

const chat = { chatTemplate: CHATML_TEMPLATE, words: CHATML_WORDS };

/** What hung for one seed of seven with the shipped model, which then wrote bytes that are not text. */
const TAG = schemaForm("a bounded text", {
  type: "object",
  properties: { idTag: { type: "string", minLength: 6, maxLength: 20 } },
  required: ["idTag"],
  additionalProperties: false,
});

/** Bytes that no text has, or not where they come: overlong forms, surrogates, beyond the last character. */
const BAD_BYTES = [0xc0, 0xc1, 0xe0, 0xed, 0xf4, 0xf5, 0xf8, 0xff, 0xa0, 0x80];

/** A request for the tag in which these bytes are as likely as can be. */
function askForTag(model: GgufFile, bytes: readonly number[], seed: number): GenerationRequest {
  const tokens = bytes.map((byte) => tokenId(model, `<0x${byte.toString(16).toUpperCase()}>`));
  const request = wildRequest(TAG.format, seed, "chat");
  const logitBias = tokens.map((token) => ({ token, bias: 5 }));
  return { ...request, sampling: { ...request.sampling, logitBias } };
}

describe.each([
  ["a vocabulary of words and bytes", () => writeModel(folder, "words", tinyLlama(chat)), [1]],
  ["a vocabulary of bytes and their pairs", () => writeModel(folder, "bytes", byteLevelLlama(chat)), [2]],
  ["the shipped model", () => SHIPPED_MODEL, [1]],
])("answers that are bound to a form, with %s", (_, modelFile, seeds) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(modelFile()));
  });
  afterAll(() => engine.close());

  test("end, and what ends by itself has the form", async () => {
    const asked = FORMS.flatMap((form) => seeds.map((seed) => ({ form, seed })));
    const wrong: object[] = [];
    const ask = async (): Promise<void> => {
      for (let next = asked.pop(); next; next = asked.pop()) {
        const { form, seed } = next;
        const request = wildRequest(form.format, seed, seed % 2 === 0 ? "chat" : "prompt");
        const outcome = await outcomeOf(engine, form, request);
        if (outcome.kind !== "right" && outcome.kind !== "cut")
          wrong.push({ form: form.name, seed, ...outcome });
      }
    };
    await Promise.all([ask(), ask(), ask(), ask()]);
    expect(wrong).toEqual([]);
  });

  test.each(IMPOSSIBLE_GRAMMARS)("fail at once where no token fits: %s", async (grammar) => {
    const form = { name: grammar, format: { type: "grammar", grammar }, isRight: () => false } as const;
    for (const kind of ["chat", "prompt"] as const) {
      expect(await outcomeOf(engine, form, wildRequest(form.format, 1, kind))).toEqual({
        kind: "failed",
        message: expect.stringMatching(
          /^inference_failed: The answer was stopped, because .* does not allow any token/,
        ),
      });
    }
  });

  test("fail alone: what runs beside them goes on", async () => {
    const request = promptRequest("Hello", {
      maxTokens: 60,
      sampling: { temperature: 0, ignoreEos: true },
      cachePrompt: false,
    });
    const beside = collect(generated(engine, request, NEVER));
    const [grammar] = IMPOSSIBLE_GRAMMARS;
    const form = {
      name: "none",
      format: { type: "grammar", grammar: grammar ?? "" },
      isRight: () => false,
    } as const;
    for (let seed = 1; seed <= 8; seed += 1)
      expect((await outcomeOf(engine, form, wildRequest(form.format, seed, "chat"))).kind).toBe("failed");
    expect(doneOf(await beside)).toMatchObject({ reason: "length", usage: { completionTokens: 60 } });
  });
});

describe.each([
  ["a vocabulary of words and bytes", tinyLlama(chat)],
  ["a vocabulary of bytes and their pairs", byteLevelLlama(chat)],
])("an answer in which tokens that it does not show are likely, with %s", (name, model) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine(engineSpec(writeModel(folder, `silent-${name}`, model)));
  });
  afterAll(() => engine.close());

  const ask = (form: Form, seed: number): Promise<Outcome> => {
    const request = wildRequest(form.format, seed, "chat");
    const logitBias = ["<unk>", "<s>"].map((token) => ({ token: tokenId(model, token), bias: 8 }));
    return outcomeOf(engine, form, { ...request, sampling: { ...request.sampling, logitBias } });
  };

  test("is as long as its schema has it", async () => {
    for (let seed = 1; seed <= 6; seed += 1) expect(await ask(TAG, seed)).toMatchObject({ kind: "right" });
  });
});

describe("an answer in which bytes that are not text are likely", () => {
  const model = tinyLlama(chat);
  let file: string;
  beforeAll(() => {
    file = writeModel(folder, "likely-bytes", model);
  });

  test("has none of them under a grammar", async () => {
    const engine = await startEngine(engineSpec(file));
    try {
      for (let seed = 1; seed <= 8; seed += 1) {
        expect(await outcomeOf(engine, TAG, askForTag(model, BAD_BYTES, seed))).toMatchObject({
          kind: "right",
          text: expect.not.stringContaining("\uFFFD"),
        });
      }
    } finally {
      await engine.close();
    }
  });

  test("fails at once and alone, and frees its slot, where llama.cpp's WebAssembly runs as it is shipped", async () => {
    const engine = await startStockEngine(engineSpec(file, { slots: 2 }));
    try {
      const sampling = { temperature: 0, ignoreEos: true };
      const beside = promptRequest("Hello", { maxTokens: 200, sampling, cachePrompt: false });
      const alone = await generateText(engine, beside);
      const running = generateText(engine, beside);
      const outcomes: Outcome[] = [];
      for (let seed = 1; seed <= 8; seed += 1)
        outcomes.push(await outcomeOf(engine, TAG, askForTag(model, BAD_BYTES, seed)));
      const failed = outcomes.filter(({ kind }) => kind !== "right");
      expect(failed.length).toBeGreaterThan(0);
      expect(failed).toEqual(
        failed.map(() => ({
          kind: "failed",
          message: expect.stringMatching(/^inference_failed: The model's answer is not valid: /),
        })),
      );
      expect(await running).toBe(alone);
      expect(await Promise.all([generateText(engine, beside), generateText(engine, beside)])).toEqual([
        alone,
        alone,
      ]);
    } finally {
      await engine.close();
    }
  });
});
