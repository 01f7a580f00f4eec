import fs from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { estimateMemory } from "../../src/engine/estimate-memory.ts";
import { createGgufInspector } from "../../src/models/gguf/inspect-gguf.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";
import { LINUX_PROC } from "../support/proc.ts";

const MIB = 1024 * 1024;

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Largest resident memory that a process ever had; Linux alone tells. */
function peakBytes(pid: number): number {
  const kilobytes = /VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) * 1024;
}

describe.skipIf(LINUX_PROC.isMissing)(`the memory of an engine${LINUX_PROC.note}`, () => {
  test("stays below the model's file, its KV cache and 300 MB, and below the estimate", async () => {
    // One matrix of this model has 50 MB: it must not be in memory twice on its way in.
    const shape = { embedding: 512, feedForward: 100_000, blocks: 1, heads: 8, kvHeads: 8 };
    const file = writeModel(folder, "large", tinyLlama({ ...shape, weights: "Q8_0" }));
    const fileBytes = fs.statSync(file).size;
    expect(fileBytes).toBeGreaterThan(150 * MIB);
    const spec = engineSpec(file, { batchSize: 8 });
    const engine = await startEngine(spec);
    await collect(generated(engine, promptRequest("Hello", { maxTokens: 2 }), NEVER));
    const peak = peakBytes(engine.pid);
    await engine.close();

    const kvBytesPerToken = 2 * 512 * 2; // K and V of one block, two bytes each
    expect(peak).toBeLessThan(fileBytes + kvBytesPerToken * spec.contextSize + 300e6);
    const estimate = estimateMemory({
      fileBytes,
      kvBytesPerToken,
      vocabSize: 400,
      embeddingLength: 512,
      headCount: 8,
      spec,
    });
    expect(peak).toBeLessThan(estimate.totalBytes);
  });
});

test("a model of many narrow heads reads prompts as long as its contexts within the heap that it is given", async () => {
  const shape = { embedding: 512, feedForward: 1024, blocks: 1, heads: 128, kvHeads: 32, context: 2048 };
  const file = writeModel(folder, "heads", tinyLlama(shape));
  const gguf = await createGgufInspector()([file]);
  const spec = engineSpec(file, { contextSize: 2048, batchSize: 512, slots: 2, sharedContext: false });
  const question = { fileBytes: gguf.fileSize, ...gguf, spec };
  const engine = await startEngine(spec, { heapLimit: () => estimateMemory(question).heapLimitBytes });
  const request = promptRequest("a ".repeat(1900), { maxTokens: 1, cachePrompt: false });
  const answers = await Promise.all([0, 1].map(() => collect(generated(engine, request, NEVER))));
  for (const answer of answers) expect(doneOf(answer).usage.promptTokens).toBeGreaterThan(1800);
  await engine.close();
});

test("an engine keeps no prompt beyond its KV cache, or it would grow with every conversation", async () => {
  const engine = await startEngine(engineSpec(writeModel(folder, "small", tinyLlama()), { slots: 1 }));
  const cachedTokens = async (prompt: string): Promise<number> =>
    doneOf(await collect(generated(engine, promptRequest(prompt, { maxTokens: 1 }), NEVER))).usage
      .cachedTokens;
  const first = "x is what this prompt is about, and nothing else";
  await cachedTokens(first);
  expect(await cachedTokens(first)).toBeGreaterThan(20);
  await cachedTokens("? there was another conversation in between");
  expect(await cachedTokens(first)).toBeLessThan(5);
  await engine.close();
});
