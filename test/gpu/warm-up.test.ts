import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { engineSpec, SHIPPED_MODEL, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import type { GgufFile } from "../support/gguf-writer.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";
import { tinyBert, tinyLlama } from "../support/tiny-models.ts";

const COUNT_PROGRAMS = fileURLToPath(new URL("../support/count-programs.ts", import.meta.url));

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** The same model without a token for a word, which it spells. */
function withoutWord(model: GgufFile, word: string): GgufFile {
  const tokens = model.metadata["tokenizer.ggml.tokens"];
  if (tokens?.type !== "array") throw new Error("the model has no vocabulary");
  const others = tokens.value.map((token) => (token === word ? "▁other" : token));
  return { ...model, metadata: { ...model.metadata, "tokenizer.ggml.tokens": { ...tokens, value: others } } };
}

function shipped(name: string): string {
  return path.join(path.dirname(SHIPPED_MODEL), `${name}.gguf`);
}

interface Counted {
  /** Compiled programs after the load, after the warm-up, and after use. */
  readonly programs: readonly [number, number, number];
  /** Log of llama.cpp about the placement of buffers. */
  readonly placed: readonly string[];
}

async function count(file: string, settings: Partial<EngineSpec>): Promise<Counted> {
  const spec = engineSpec(file, { ...onGpu, contextSize: 64, slots: 1, ...settings });
  const { stdout } = await promisify(execFile)(process.execPath, [
    // Only GPU programs are counted, so fast CPU code is not needed.
    "--liftoff-only",
    COUNT_PROGRAMS,
    JSON.stringify(spec),
    fs.mkdtempSync(`${folder}/`),
  ]);
  const counted: Counted = JSON.parse(stdout);
  return counted;
}

describe.skipIf(!testGpu)(`after the warm-up, ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test.each([
    // " a" is two tokens here, so a batch of words does not fit into the context.
    ["generating", "generate", withoutWord(tinyLlama(), "▁a"), 256],
    ["embedding", "embed", tinyBert(), 64],
  ] as const)("%s compiles nothing more, whatever the length of the text", async (...given) => {
    const [, purpose, model, batchSize] = given;
    const { programs } = await count(writeModel(folder, purpose, model), { purpose, batchSize });
    const [atLoading, warm, used] = programs;
    expect(warm).toBeGreaterThan(atLoading);
    expect(used).toBe(warm);
  });

  test("images compile nothing either; KV cache, projector and adapter are on the GPU", async () => {
    const { programs, placed } = await count(SHIPPED_MODEL, {
      batchSize: 2,
      gpuLayers: 2,
      projectorFile: shipped("daybreak-mini-vision"),
      adapters: [{ path: shipped("daybreak-mini-pirate"), scale: 1 }],
    });
    const [, warm, used] = programs;
    expect(used).toBe(warm);
    for (const thing of [/KV buffer/, /LoRA buffer/, /clip_ctx: CLIP using/]) {
      expect(placed.filter((line) => thing.test(line))).toContainEqual(expect.stringContaining("WebGPU"));
    }
    // One block is on the GPU, and only its KV cache.
    expect(placed).toContainEqual(expect.stringMatching(/CPU KV buffer/));
  });
});
