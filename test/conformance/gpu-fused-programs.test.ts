import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { benchQwen } from "../support/bench-qwen.ts";
import { engineSpec, SHIPPED_MODEL, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import type { FusedRun } from "../support/fused-programs.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";
import { tinyMixture } from "../support/tiny-mixture.ts";

const RUN = fileURLToPath(new URL("../support/fused-programs.ts", import.meta.url));

const folder = temporaryFolder();
const shipped = (name: string): string => path.join(path.dirname(SHIPPED_MODEL), `${name}.gguf`);
afterAll(() => fs.rmSync(folder, { recursive: true }));

const SHIPPED = (): string => SHIPPED_MODEL;

const qwen2 = (): string => writeModel(folder, "qwen2", benchQwen(2, "Q4_K_M"));

/** Few bind no more than 16 buffers, WebGPU promises 8. */
const MANY_BUFFERS = 16;

async function run(
  file: string,
  compiles: boolean,
  more: Partial<EngineSpec> = {},
  mostBuffers = MANY_BUFFERS,
): Promise<FusedRun> {
  const spec = engineSpec(file, { ...onGpu, contextSize: 128, slots: 1, batchSize: 16, ...more });
  const args = [
    RUN,
    JSON.stringify(spec),
    fs.mkdtempSync(`${folder}/`),
    String(compiles),
    String(mostBuffers),
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const result: FusedRun = JSON.parse(stdout);
  return result;
}

describe.skipIf(!testGpu)(`fused programs ${onTestGpu}`, { timeout: 2 * GPU_TEST_TIMEOUT_MS }, () => {
  test.each<[string, () => string, number]>([
    ["a llama in Q8_0", SHIPPED, MANY_BUFFERS],
    // Its products of keys and values have different formats.
    ["a llama in Q4_K_M", () => ensureBenchModel(folder, "tiny", "Q4_K_M"), MANY_BUFFERS],
    ["Qwen 2, which has biases", qwen2, MANY_BUFFERS],
    ["Qwen 2 on a GPU that binds few buffers", qwen2, 8],
    [
      "Qwen 3, which has norms of heads",
      () => writeModel(folder, "qwen3", benchQwen(3, "Q8_0")),
      MANY_BUFFERS,
    ],
  ])(
    "compute what llama.cpp's own compute of %s, in two thirds of the programs",
    async (_, file, buffers) => {
      const [fused, own] = [await run(file(), true, {}, buffers), await run(file(), false)];
      expect(fused.refused).toBe(0);
      // Products; what follows them; gate, up and activation; additions.
      expect(fused.compiled).toBeGreaterThanOrEqual(4);
      expect(own.logprobs.length).toBeGreaterThan(5);
      expect(fused.logprobs).toEqual(own.logprobs);
      expect(fused.programs / own.programs).toBeLessThan(0.67);
    },
  );

  test.each<[string, () => string, Partial<EngineSpec>]>([
    ["several slots with a context each", SHIPPED, { slots: 3 }],
    ["several slots in one context", SHIPPED, { slots: 3, sharedContext: true, contextSize: 384 }],
    ["a quantized cache", SHIPPED, { cacheTypeK: "q8_0", cacheTypeV: "q8_0" }],
    ["an adapter", SHIPPED, { adapters: [{ path: shipped("daybreak-mini-pirate"), scale: 1 }] }],
    ["a mixture of experts", () => writeModel(folder, "mixture", tinyMixture(["Q8_0", "Q4_0"])), {}],
  ])("compute the same with %s", async (_, file, more) => {
    const [fused, own] = [await run(file(), true, more), await run(file(), false, more)];
    expect(fused.refused).toBe(0);
    expect(fused.compiled).toBeGreaterThan(0);
    // Not every token of random weights is text.
    expect(own.logprobs.length).toBeGreaterThan(5);
    expect(fused.logprobs).toEqual(own.logprobs);
    expect(fused.texts).toEqual(own.texts);
    expect(fused.programs).toBeLessThan(own.programs);
  });
});
