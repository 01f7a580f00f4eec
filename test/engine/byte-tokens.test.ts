import fs from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
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
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../support/tiny-models.ts";

const folder = temporaryFolder();
let engine: Engine;

beforeAll(async () => {
  const model = tinyLlama({ chatTemplate: CHATML_TEMPLATE, words: CHATML_WORDS });
  engine = await startEngine(engineSpec(writeModel(folder, "bytes", model)));
});
afterAll(async () => {
  await engine.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Ids of byte tokens, which follow the first three tokens. */
function isByte({ id }: { id: number }): boolean {
  return id >= 3 + 0x80 && id < 3 + 0x100;
}

test("tokens that are parts of characters have log-probabilities and exact bytes", async () => {
  const sampling = { temperature: 1.5, seed: 7, ignoreEos: true };
  const events = await collect(
    generated(engine, chatRequest("Hello", { logprobs: 20, maxTokens: 60, sampling }), NEVER),
  );
  const pieces = events.filter((event) => event.type === "text-delta").filter(({ text }) => text !== "");
  expect(pieces.length).toBeGreaterThan(10);
  const reported = pieces.map(({ logprobs }) => logprobs ?? []);
  expect(reported.filter((logprobs) => logprobs.length === 0)).toEqual([]);
  const alternatives = reported.flat().flatMap(({ top }) => top.filter(isByte));
  expect(alternatives.length).toBeGreaterThan(20);
  for (const { id, bytes } of alternatives) expect(bytes).toEqual([id - 3]);
  // llama.cpp reports a character of several tokens with the last one.
  const chosen = reported.flat().filter(isByte);
  expect(chosen.length).toBeGreaterThan(0);
  for (const { id, bytes } of chosen) expect(bytes?.at(-1)).toBe(id - 3);
  for (const { text, logprobs = [] } of pieces) {
    expect(Buffer.from(logprobs.flatMap(({ bytes }) => bytes ?? [])).toString()).toBe(text);
  }
  expect(doneOf(events).usage.completionTokens).toBe(60);
});
