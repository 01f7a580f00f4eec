import { execFile } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import { nullSpec } from "../../scripts/bench/gpu/host-cost.ts";
import { findDawn } from "../../src/engine/gpu/find-dawn.ts";
import type { Uploads } from "../support/count-uploads.ts";
import { temporaryFolder } from "../support/engine-fixture.ts";
import { requireOnCi } from "../support/require-on-ci.ts";

const COUNT_UPLOADS = fileURLToPath(new URL("../support/count-uploads.ts", import.meta.url));
const MIB = 1024 * 1024;
/** Of a piece of a file, which is what the GPU is given at once. */
const PIECE_BYTES = 8 * MIB;
/** Q8_0 has 34 bytes for 32 weights. */
const bytesOf = (weights: number): number => (weights / 32) * 34;

const hasDawn = findDawn() !== undefined;
requireOnCi("Dawn", hasDawn);

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(!hasDawn)("weights for a GPU", () => {
  test("get there in pieces as they are read, and not through the heap", async () => {
    const file = ensureBenchModel(folder, "0.1B", "Q8_0", 1);
    const spec = nullSpec(file, 256, { batchSize: 64, replay: true });
    const args = ["--liftoff-only", COUNT_UPLOADS, JSON.stringify(spec), folder];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const uploads: Uploads = JSON.parse(stdout);
    expect(uploads.gpuLayers).toBe(2);
    expect(uploads.largest).toBe(PIECE_BYTES);
    // The output, which is the embedding, and the three matrices of the feed-forward part; smaller tensors are read ahead.
    expect(uploads.fromElsewhere).toBe(bytesOf(768 * (32_000 + 3 * 2048)));
    expect(uploads.fromHeap).toBeGreaterThan(bytesOf(768 * 256));
    expect(uploads.fromHeap).toBeLessThan(2 * MIB);
  });
});
