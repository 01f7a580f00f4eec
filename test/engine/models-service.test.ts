import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { createTensorQuantizer } from "../../src/engine/quantize/quantize-tensors.ts";
import { configSchema } from "../../src/config/schema.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import type { ServiceEvent } from "../../src/events/service-events.ts";
import { DiskHubStore } from "../../src/models/hub/disk-hub-store.ts";
import type { Models } from "../../src/models/models.ts";
import { ModelsService } from "../../src/models/models-service.ts";
import { NameResolver } from "../../src/models/names/name-resolver.ts";
import { writeGguf } from "../support/gguf-writer.ts";
import { spawnTestEngine } from "../support/program.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const SHIPPED = fileURLToPath(new URL("../../models/", import.meta.url));
const MINI = "daybreak-mini";
const NEVER = new AbortController().signal;

async function startModels(): Promise<{ models: Models; events: ServiceEvent[]; cacheDir: string }> {
  const cacheDir = await mkdtemp(path.join(os.tmpdir(), "daybreak-engine-"));
  const events: ServiceEvent[] = [];
  const config = configSchema.parse({ cache_dir: cacheDir, models: { slots: 1 } });
  const models = await ModelsService.create({
    kernels: "stock",
    config,
    startEngine: createEngineStarter({
      loadTimeoutMs: config.engine.load_timeout,
      stallTimeoutMs: config.engine.stall_timeout,
      spawn: spawnTestEngine,
    }),
    memory: {
      estimate: (gguf) => gguf.fileSize,
      estimateGpu: () => 0,
      gpuBudget: () => Number.POSITIVE_INFINITY,
      offloadLayers: async (_gguf, spec, requested) => ({ spec: { ...spec, gpuLayers: requested ?? 0 } }),
    },
    quantizeTensors: createTensorQuantizer({ findSandbox: async () => undefined }),
    hub: new DiskHubStore({ cacheDir, hubUrl: "http://hub.invalid" }),
    resolver: new NameResolver(new Map()),
    shippedDir: SHIPPED,
    events: { emit: (event) => void events.push(event) },
    logger: { debug: () => {}, warn: () => {} },
  });
  onTestFinished(async () => {
    await models.close();
    await rm(cacheDir, { recursive: true, force: true });
  });
  return { models, events, cacheDir };
}

it("loads the shipped model, restarts its engine after a crash, and unloads it", async () => {
  const { models, events } = await startModels();

  const loaded = await models.load({ alias: MINI });
  expect(loaded).toMatchObject({ alias: MINI, state: "loaded", isDefault: true, gpuLayers: 0 });
  expect(loaded.memoryBytes).toBeGreaterThan(0);

  const before = await models.acquire(undefined, NEVER);
  expect(before.engine.info.vocabSize).toBe(loaded.gguf.vocabSize);
  expect(before.engine.info.trainedContextSize).toBe(loaded.gguf.contextLength);
  expect(before.engine.info.layers).toBe(loaded.gguf.blockCount);
  process.kill(before.engine.pid, "SIGKILL");
  await before.engine.exited;
  before[Symbol.dispose]();
  expect((await models.get(MINI)).state).toBe("available");

  {
    using after = await models.acquire(undefined, NEVER);
    expect(after.engine.alive).toBe(true);
    expect(after.engine.pid).not.toBe(before.engine.pid);
  }
  await models.unload(MINI);

  expect((await models.get(MINI)).state).toBe("available");
  expect(events.map(({ type }) => type)).toEqual([
    "model-loaded",
    "model-failed",
    "engine-restarted",
    "model-loaded",
    "model-unloaded",
  ]);
});

it("reports the engine's error for an invalid model and continues", async () => {
  const { models, cacheDir } = await startModels();
  const file = path.join(cacheDir, "strange.gguf");
  writeGguf(file, tinyLlama({ architecture: "no-such-architecture" }));

  await expect(models.load({ alias: "strange", path: file })).rejects.toMatchObject({ type: "model_error" });

  await expect(models.get("strange")).rejects.toMatchObject({ code: "model_not_found" });
  expect((await models.load({ alias: MINI })).state).toBe("loaded");
});
