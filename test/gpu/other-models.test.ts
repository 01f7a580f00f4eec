import fs from "node:fs";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import {
  chatRequest,
  collect,
  engineSpec,
  NEVER,
  SHIPPED_MODEL,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { logprobsOf, shareOfRounding } from "../support/forced-text.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, startGpuEngine, testGpu } from "../support/test-gpu.ts";
import { tinyBert } from "../support/tiny-models.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { generated } from "../support/generated.ts";

/** Minimum cosine between vectors of the GPU and the CPU. */
const LEAST_COSINE = 0.999;

/** Largest difference between a score on the GPU and on the CPU. */
const SCORE_TOLERANCE = 0.05;

/** Maximum difference of log-probabilities after an image, which passes through 16-bit floats in two models. */
const IMAGE_TOLERANCE = 0.2;

const folder = temporaryFolder();
const engines: Engine[] = [];

afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  fs.rmSync(folder, { recursive: true });
});

function shipped(name: string): string {
  return path.join(path.dirname(SHIPPED_MODEL), `${name}.gguf`);
}

/**
 * Starts the same engine on the GPU and on the CPU.
 * @param layers layers on the GPU; default: all
 */
async function both(spec: EngineSpec, layers = -1): Promise<{ gpu: Engine; cpu: Engine }> {
  const [gpu, cpu] = await Promise.all([
    startGpuEngine({
      ...onGpu,
      ...spec,
      gpuLayers: layers,
      ...(onGpu.gpu && { gpu: { ...onGpu.gpu, batchSize: spec.batchSize } }),
    }),
    startGpuEngine(spec),
  ]);
  engines.push(gpu, cpu);
  expect(gpu.info.gpuLayers).toBeGreaterThan(0);
  expect(cpu.info.gpuLayers).toBe(0);
  return { gpu, cpu };
}

function dot(some: readonly number[], others: readonly number[]): number {
  return some.reduce((sum, value, index) => sum + value * (others[index] ?? 0), 0);
}

function cosine(some: readonly number[], others: readonly number[]): number {
  return dot(some, others) / Math.sqrt(dot(some, some) * dot(others, others));
}

describe.skipIf(!testGpu)(`beside plain text, ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("embeddings equal the CPU's", async () => {
    const spec = engineSpec(shipped("daybreak-mini-embed"), {
      purpose: "embed",
      contextSize: 64,
      batchSize: 64,
      slots: 1,
    });
    const { gpu, cpu } = await both(spec);
    for (const text of ["The ship left the harbour at dawn.", "tea"]) {
      const found = await gpu.embed(text, NEVER);
      const expected = await cpu.embed(text, NEVER);
      expect(found.tokens).toBe(expected.tokens);
      expect(cosine(found.vector, expected.vector)).toBeGreaterThan(LEAST_COSINE);
    }
    const other = await cpu.embed("tea", NEVER);
    const ship = await gpu.embed("The ship left the harbour at dawn.", NEVER);
    expect(cosine(ship.vector, other.vector)).toBeLessThan(LEAST_COSINE);
  });

  test("scores of a reranker equal the CPU's", async () => {
    const spec = engineSpec(writeModel(folder, "rerank", tinyBert({ rerank: true })), {
      purpose: "rerank",
      contextSize: 64,
      batchSize: 64,
      slots: 1,
    });
    const { gpu, cpu } = await both(spec);
    for (const document of ["a red ship", "some tea"]) {
      const found = await gpu.rerank("ship", document, NEVER);
      const expected = await cpu.rerank("ship", document, NEVER);
      expect(Math.abs(found.score - expected.score)).toBeLessThan(SCORE_TOLERANCE);
    }
  });

  test("an image and an adapter change the answer as they do on the CPU", async () => {
    const spec = engineSpec(SHIPPED_MODEL, {
      batchSize: 32,
      slots: 1,
      projectorFile: shipped("daybreak-mini-vision"),
      adapters: [{ path: shipped("daybreak-mini-pirate"), scale: 1 }],
    });
    // Adapter and projector are on the GPU with any layer; few layers, because a software GPU is slow.
    const { gpu, cpu } = await both(spec, 3);
    const looking = chatRequest(
      [
        { type: "image", data: tinyPng(64, 64, () => [220, 30, 30]) },
        { type: "text", text: "What do you see?" },
      ],
      { maxTokens: 4, logprobs: 5 },
    );
    const [found, expected] = await Promise.all(
      [gpu, cpu].map(async (engine) => await topOfFirst(engine, looking)),
    );
    expect(found?.size).toBe(5);
    const differences = [...(found ?? [])].map(([token, logprob]) =>
      Math.abs(logprob - (expected?.get(token) ?? logprob)),
    );
    expect(Math.max(...differences)).toBeLessThan(IMAGE_TOLERANCE);
    // The most likely token of each is among the most likely of the other.
    expect([...(expected?.keys() ?? [])]).toContain(found?.keys().next().value);
    const blind = await topOfFirst(cpu, chatRequest("What do you see?", { maxTokens: 1, logprobs: 5 }));
    expect([...blind]).not.toEqual([...(expected ?? [])]);
    const [onGpuNow, onCpu] = await Promise.all(
      [gpu, cpu].map((engine) => logprobsOf(engine, "Once upon a time", "there was a cat.")),
    );
    expect(shareOfRounding(onGpuNow!, onCpu!)).toBeLessThan(1);
  });
});

/** Most likely first tokens and their log-probabilities. */
async function topOfFirst(
  engine: Engine,
  request: ReturnType<typeof chatRequest>,
): Promise<ReadonlyMap<string, number>> {
  const events = await collect(generated(engine, request, NEVER));
  const [first] = events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
  return new Map((first?.top ?? []).map(({ token, logprob }) => [token, logprob]));
}
