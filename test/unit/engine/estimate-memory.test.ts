import { describe, expect, test } from "vitest";
import { checkHeapLimit, estimateMemory, type MemoryInput } from "../../../src/engine/estimate-memory.ts";

const GIB = 1024 ** 3;
const question = {
  fileBytes: GIB,
  kvBytesPerToken: 100_000,
  vocabSize: 32_000,
  embeddingLength: 2048,
  headCount: 32,
  spec: { contextSize: 4096, slots: 4, sharedContext: true, batchSize: 8, threads: 1 },
};

const HEAP_LIMIT = 4 * 1024 ** 3;

/** Bytes of the KV cache alone. */
function cacheOf(change: Partial<MemoryInput["spec"]>): number {
  const spec = { ...question.spec, ...change };
  const without = estimateMemory({ ...question, spec, kvBytesPerToken: 0 });
  return estimateMemory({ ...question, spec }).heapBytes - without.heapBytes;
}

describe("the memory estimate of an engine", () => {
  test("is the file, the KV cache and at most 300 MB more", () => {
    const { totalBytes } = estimateMemory(question);
    const fileAndCache = GIB + 100_000 * 4096;
    expect(totalBytes).toBeGreaterThan(fileAndCache);
    expect(totalBytes).toBeLessThan(fileAndCache + 300e6);
  });

  test("grows with context, step size, threads and the width of the cache's type", () => {
    const { totalBytes } = estimateMemory(question);
    for (const change of [
      { contextSize: 8192 },
      { sharedContext: false },
      { batchSize: 512 },
      { threads: 4 },
      { cacheTypeK: "f32" as const },
    ]) {
      expect(
        estimateMemory({ ...question, spec: { ...question.spec, ...change } }).totalBytes,
      ).toBeGreaterThan(totalBytes);
    }
  });

  test("counts one context if the slots share it, or else one per slot", () => {
    expect(cacheOf({ sharedContext: true })).toBe(100_000 * 4096);
    expect(cacheOf({ sharedContext: false })).toBe(4 * 100_000 * 4096);
  });

  test("has about half the KV cache with eight bits", () => {
    const eightBits = { cacheTypeK: "q8_0", cacheTypeV: "q8_0" } as const;
    expect(cacheOf(eightBits) / cacheOf({})).toBeCloseTo(34 / 64, 3);
  });

  test("has a larger heap limit, and a still larger one with an image projector", () => {
    const { heapBytes, heapLimitBytes } = estimateMemory(question);
    expect(heapLimitBytes).toBeGreaterThan(heapBytes + 256 * 1024 ** 2);
    const seeing = { ...question, spec: { ...question.spec, projectorFile: "projector.gguf" } };
    expect(estimateMemory(seeing).heapBytes).toBe(heapBytes);
    expect(estimateMemory(seeing).heapLimitBytes).toBeGreaterThan(heapLimitBytes + 256 * 1024 ** 2);
  });

  test("rejects a model that no engine can load, with both sizes in the message", () => {
    expect(() => checkHeapLimit(estimateMemory(question), HEAP_LIMIT)).not.toThrow();
    const tooLarge = estimateMemory({ ...question, fileBytes: HEAP_LIMIT });
    expect(() => checkHeapLimit(tooLarge, HEAP_LIMIT)).toThrow(
      expect.objectContaining({
        code: "insufficient_memory",
        message: expect.stringMatching(/\d{4} MiB.*4096 MiB/),
      }),
    );
  });
});
