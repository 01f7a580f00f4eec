import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { EngineSlots } from "../../src/engine/engine-slots.ts";
import { collect, engineSpec, NEVER, promptRequest, SHIPPED_MODEL } from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, startGpuEngine, testGpu } from "../support/test-gpu.ts";

/** Longer than a step of the warm-up: looking is a call as well, and goes first. */
const LOOK_MS = 3000;

describe.skipIf(!testGpu)(`the rest of the warm-up ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("is done after the request for which the model was loaded, and takes no conversation from its slot", async () => {
    const engine = await startGpuEngine(engineSpec(SHIPPED_MODEL, { ...onGpu, batchSize: 16, slots: 4 }));
    const slots = new EngineSlots(engine);
    const request = promptRequest("once upon a time there was a small model that told stories", {
      maxTokens: 16,
      sampling: { temperature: 0, ignoreEos: true },
    });
    const ask = async (): Promise<number | undefined> => {
      const events = await collect(generated(engine, request, NEVER));
      return events.find((event) => event.type === "done")?.usage.cachedTokens;
    };
    expect(await ask()).toBeLessThan(2);
    await expect
      .poll(
        async () => {
          await sleep(LOOK_MS);
          // Steps of one to six tokens; the conversation is longer.
          return (await slots.list(NEVER)).filter(({ tokens }) => tokens > 0 && tokens <= 8).length;
        },
        { timeout: GPU_TEST_TIMEOUT_MS / 2 },
      )
      .toBeGreaterThan(0);
    expect(await ask()).toBeGreaterThan(8);
    await engine.close();
  });
});
