import { execFile } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import { engineSpec, SHIPPED_MODEL, temporaryFolder } from "../support/engine-fixture.ts";
import type { FusedRun } from "../support/fused-programs.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";

const RUN = fileURLToPath(new URL("../support/fused-programs.ts", import.meta.url));

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function run(file: string, compiles: boolean): Promise<FusedRun> {
  const spec = engineSpec(file, { ...onGpu, contextSize: 128, slots: 1, batchSize: 16 });
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
});
