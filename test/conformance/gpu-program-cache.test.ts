import fs from "node:fs";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { engineSpec, SHIPPED_MODEL, temporaryFolder } from "../support/engine-fixture.ts";
import { GPU_TEST_TIMEOUT_MS, gpuEngineStarter, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Bytes of each file in the cache. */
function sizes(): Record<string, number> {
  const files = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile());
  return Object.fromEntries(
    files.map((each) => {
      const file = path.join(each.parentPath, each.name);
      return [path.relative(folder, file), fs.statSync(file).size];
    }),
  );
}

/** Only Mesa's software driver is the same on every machine that tests. */
const isLavapipe = testGpu?.software === true && process.platform === "linux";

describe.skipIf(!isLavapipe)(`programs ${onTestGpu}`, { timeout: 2 * GPU_TEST_TIMEOUT_MS }, () => {
  test("are compiled at the first start of a model, and found at the second", async () => {
    const start = gpuEngineStarter({ programCache: folder });
    const spec = engineSpec(SHIPPED_MODEL, { ...onGpu, batchSize: 16 });
    await (await start(spec)).close();
    const first = sizes();
    const bytes = Object.values(first).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(100_000);
    await (await start(spec)).close();
    expect(sizes()).toEqual(first);
  });
});
