import fs from "node:fs";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  temporaryFolder,
  textOf,
  writeModel,
} from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";
import { words } from "../support/prompt-patterns.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, startGpuEngine, testGpu } from "../support/test-gpu.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(!testGpu)(
  `prompts that no slot holds any more ${onTestGpu}`,
  { timeout: GPU_TEST_TIMEOUT_MS },
  () => {
    test.each([true, false])(
      "are read once and answered as afresh, with a shared context: %s",
      async (sharedContext) => {
        const file = writeModel(folder, "tiny", tinyLlama({ context: 512 }));
        const spec = engineSpec(file, {
          ...onGpu,
          contextSize: 512,
          slots: 2,
          sharedContext,
          promptCacheBytes: 1 << 24,
        });
        const engine = await startGpuEngine(spec, {});
        onTestFinished(async () => await engine.close());
        expect(engine.info.gpuLayers).toBeGreaterThan(0);
        const ask = async (prompt: string, cachePrompt: boolean) => {
          const events = await collect(
            generated(engine, promptRequest(prompt, { maxTokens: 4, cachePrompt }), NEVER),
          );
          return { prompt, text: textOf(events), ...doneOf(events).usage };
        };
        const chats = ["a", "b", "c", "d"].map((name) => words("system", 8) + words(name, 8));
        const turns = [];
        for (let round = 0; round < 3; round++) {
          for (const [at, chat] of chats.entries()) {
            const turn = await ask(chat, true);
            turns.push(turn);
            chats[at] = chat + turn.text + words(`q${at}`, 2);
          }
        }
        const last = turns.slice(-chats.length);
        for (const { promptTokens, cachedTokens } of last)
          expect(cachedTokens).toBeGreaterThan(0.8 * promptTokens);
        const afresh = [];
        for (const { prompt } of turns) afresh.push((await ask(prompt, false)).text);
        expect(turns.map(({ text }) => text)).toEqual(afresh);
      },
    );

    test("are not those of the warm-up, of which nothing was computed at first", async () => {
      const spec = { ...onGpu, contextSize: 256, batchSize: 64, slots: 1, promptCacheBytes: 1 << 24 };
      const engine = await startGpuEngine(engineSpec(SHIPPED_MODEL, spec), {});
      onTestFinished(async () => await engine.close());
      const ask = async (cachePrompt: boolean): Promise<string> => {
        // The warm-up's own words.
        const request = promptRequest(" a".repeat(48), { maxTokens: 8, cachePrompt });
        return textOf(await collect(generated(engine, request, NEVER)));
      };
      expect(await ask(true)).toBe(await ask(false));
    });
  },
);
