import { execFile } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { engineSpec, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";
import { tinyBert, tinyLlama } from "../support/tiny-models.ts";

const COUNT_PROGRAMS = fileURLToPath(new URL("../support/count-programs.ts", import.meta.url));

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(!testGpu)(`after the warm-up, ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test.each([
    ["generating", "generate", tinyLlama(), 16],
    ["embedding", "embed", tinyBert(), 64],
  ] as const)("%s compiles nothing more, whatever the length of the text", async (...given) => {
    const [, purpose, model, batchSize] = given;
    const file = writeModel(folder, purpose, model);
    const spec = engineSpec(file, { ...onGpu, purpose, contextSize: 64, batchSize, slots: 1 });
    const { stdout } = await promisify(execFile)(process.execPath, [
      COUNT_PROGRAMS,
      JSON.stringify(spec),
      folder,
    ]);
    const [atLoading = 0, warm = 0, used]: number[] = JSON.parse(stdout);
    expect(warm).toBeGreaterThan(atLoading);
    expect(used).toBe(warm);
  });
});
