import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { EngineSlots } from "../../src/engine/engine-slots.ts";
import { collect, engineSpec, NEVER, promptRequest, SHIPPED_MODEL } from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";
import { GPU_TEST_TIMEOUT_MS, onGpu, onTestGpu, startGpuEngine, testGpu } from "../support/test-gpu.ts";

/** Longer than a step of the warm-up: looking is a call as well, and goes first. */
const LOOK_MS = 3000;

const spec = engineSpec(SHIPPED_MODEL, { ...onGpu, batchSize: 16, slots: 4 });
const request = promptRequest("once upon a time there was a small model that told stories", {
  maxTokens: 16,
  sampling: { temperature: 0, ignoreEos: true },
});

async function cachedTokens(engine: Engine): Promise<number | undefined> {
  const events = await collect(generated(engine, request, NEVER));
  return events.find((event) => event.type === "done")?.usage.cachedTokens;
}

/** Resolves when empty slots have been used since the last look at them; what was read there must be gone. */
async function warmedUp(slots: EngineSlots): Promise<void> {
  const lastUse = async (): Promise<number> => {
    const used = (await slots.list(NEVER)).filter(({ tokens }) => tokens <= 8);
    expect(used.map(({ tokens }) => tokens)).toEqual(used.map(() => 0));
    return Math.max(...used.map(({ lastUsed }) => lastUsed));
  };
  const before = await lastUse();
  await expect
    .poll(
      async () => {
        await sleep(LOOK_MS);
        return await lastUse();
      },
      { timeout: GPU_TEST_TIMEOUT_MS / 2 },
    )
    .toBeGreaterThan(before);
}

describe.skipIf(!testGpu)(`the rest of the warm-up ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("is done after the request for which the model was loaded, and takes no conversation from its slot", async () => {
    const engine = await startGpuEngine(spec);
    expect(await cachedTokens(engine)).toBe(0);
    await warmedUp(new EngineSlots(engine));
    expect(await cachedTokens(engine)).toBeGreaterThan(8);
    await engine.close();
  });

  test("leaves nothing that the first prompt would go on from", async () => {
    const engine = await startGpuEngine(spec);
    await warmedUp(new EngineSlots(engine));
    expect(await cachedTokens(engine)).toBe(0);
    await engine.close();
  });
});
