import { execFile } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import { nullSpec } from "../../scripts/bench/gpu/host-cost.ts";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";
import type { Loaded } from "../support/count-loading.ts";
import { temporaryFolder } from "../support/engine-fixture.ts";
import { need } from "../support/need.ts";

const COUNT_LOADING = fileURLToPath(new URL("../support/count-loading.ts", import.meta.url));
const MIB = 1024 * 1024;
/** Bytes of a chunk of a file, which is uploaded at once. */
const PIECE_BYTES = 8 * MIB;
/** Q8_0 has 34 bytes for 32 weights. */
const bytesOf = (weights: number): number => (weights / 32) * 34;

const DAWN = need("Dawn, the optional package webgpu", findDawn() !== undefined);

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(DAWN.isMissing)(`while a model is loaded onto a GPU${DAWN.note}`, () => {
  let loaded: Loaded;
  beforeAll(async () => {
    const file = ensureBenchModel(folder, "0.1B", "Q8_0", 1);
    const spec = nullSpec(file, 256, { batchSize: 64, replay: true });
    const args = ["--liftoff-only", COUNT_LOADING, JSON.stringify(spec), folder];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    loaded = JSON.parse(stdout);
  });

  test("weights are uploaded in chunks as they are read, without the heap", () => {
    expect(loaded.gpuLayers).toBe(2);
    expect(loaded.largest).toBe(PIECE_BYTES);
    // The output, which is the embedding, and the three feed-forward matrices; smaller tensors are read ahead.
    expect(loaded.loadedOutside).toBe(bytesOf(768 * (32_000 + 3 * 2048)));
    expect(loaded.fromHeap).toBeGreaterThan(bytesOf(768 * 256));
    expect(loaded.fromHeap).toBeLessThan(2 * MIB);
  });

  test("shaders are compiled concurrently, except for the one that clears buffers", () => {
    // First the shaders of the graph that llama.cpp computes at load, then those of requests.
    expect(loaded.inParallel).toBeGreaterThan(15);
    expect(loaded.atOnce).toBeGreaterThan(10);
    expect(loaded.oneByOne).toBe(1);
  });
});
