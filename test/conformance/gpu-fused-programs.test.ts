import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { engineSpec, SHIPPED_MODEL, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import type { FusedRun } from "../support/fused-programs.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";
import { tinyMixture } from "../support/tiny-mixture.ts";

const RUN = fileURLToPath(new URL("../support/fused-programs.ts", import.meta.url));

const folder = temporaryFolder();
const shipped = (name: string): string => path.join(path.dirname(SHIPPED_MODEL), `${name}.gguf`);
afterAll(() => fs.rmSync(folder, { recursive: true }));

const SHIPPED = (): string => SHIPPED_MODEL;

async function run(file: string, compiles: boolean, more: Partial<EngineSpec> = {}): Promise<FusedRun> {
  const spec = engineSpec(file, { ...onGpu, contextSize: 128, slots: 1, batchSize: 16, ...more });
  const args = [RUN, JSON.stringify(spec), fs.mkdtempSync(`${folder}/`), String(compiles)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const result: FusedRun = JSON.parse(stdout);
  return result;
}

describe.skipIf(!testGpu)(`fused programs ${onTestGpu}`, { timeout: 2 * GPU_TEST_TIMEOUT_MS }, () => {
  test.each([
    ["in Q8_0", () => SHIPPED_MODEL],
    // Its products of keys and values have different formats.
    ["in Q4_K_M", () => ensureBenchModel(folder, "tiny", "Q4_K_M")],
  ])("compute what llama.cpp's own compute %s, in three quarters of the programs", async (_, file) => {
    const [fused, own] = [await run(file(), true), await run(file(), false)];
    expect(fused.refused).toBe(0);
    // Gate, up and activation; products of key and value; writes to the cache; additions and norms.
    expect(fused.compiled).toBeGreaterThanOrEqual(4);
    expect(own.logprobs.length).toBeGreaterThan(20);
    expect(fused.logprobs).toEqual(own.logprobs);
    expect(fused.programs / own.programs).toBeLessThan(0.75);
  });

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
