import fs from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { ensureBenchModel } from "../../scripts/bench/cpu/bench-models.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { STOCK_HEAP_BYTES } from "../../src/engine/core/worker-patches.ts";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import { collect, engineSpec, NEVER, promptRequest, temporaryFolder } from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";
import { GPU_TEST_TIMEOUT_MS, gpuEngineStarter, onGpu, onTestGpu, testGpu } from "../support/test-gpu.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function thoughts(engine: Engine): Promise<TokenLogprob[]> {
  const request = promptRequest("once upon a time", {
    maxTokens: 8,
    logprobs: 5,
    // llama.cpp's own keeps a first token of the warm-up, and would read the rest of the prompt in another step.
    cachePrompt: false,
    sampling: { temperature: 0, ignoreEos: true },
  });
  const events = await collect(generated(engine, request, NEVER));
  await engine.close();
  return events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
}

/** llama.cpp's own WebAssembly, which our glue gives a GPU as well. */
const STOCK = { wasmPath: STOCK_WASM_PATH, heapLimitBytes: STOCK_HEAP_BYTES };

describe.skipIf(!testGpu)(`weights that were uploaded in pieces ${onTestGpu}`, () => {
  test(
    "are those that llama.cpp uploads from its heap",
    async () => {
      const file = ensureBenchModel(folder, "0.1B", "Q4_K_M", 2);
      const spec = { ...engineSpec(file, { contextSize: 128, slots: 1 }), ...onGpu, batchSize: 16 };
      const ours = await thoughts(await gpuEngineStarter()(spec));
      const stock = await thoughts(await gpuEngineStarter(STOCK)(spec));
      expect(ours).toHaveLength(8);
      expect(ours).toEqual(stock);
    },
    2 * GPU_TEST_TIMEOUT_MS,
  );
});
