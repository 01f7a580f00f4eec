import fs from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import { gpuNeeds } from "../../src/engine/gpu/gpu-memory.ts";
import { createGgufInspector } from "../../src/models/gguf/inspect-gguf.ts";
import { SHIPPED_MODEL } from "../support/engine-fixture.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { GPU_TEST_TIMEOUT_MS, onTestGpu, testGpu } from "../support/test-gpu.ts";

let daemon: TestDaemon | undefined;

afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

/** Tokens in a step; with a number of its own no model is loaded twice, however slow the machine is. */
const STEP = 16;

const NAMED = {
  SERVICE_GPU_MODE: "auto",
  SERVICE_GPU_ADAPTER: testGpu?.name ?? "",
  SERVICE_ENGINE_BATCH_SIZE: String(STEP),
};

async function ask(path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${daemon?.url}${path}`, {
    ...(body && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
  const answer: Record<string, unknown> = await response.json();
  return answer;
}

/** Bytes of the GPU for the shipped model as the daemon loads it, and for two layers of it once more. */
async function memoryForMore(): Promise<number> {
  const gguf = await createGgufInspector()([SHIPPED_MODEL]);
  const { models } = configSchema.parse({});
  const spec = { contextSize: Math.min(gguf.contextLength, models.context_size), slots: models.slots };
  const own = gpuNeeds(gguf, { ...spec, sharedContext: false }, STEP);
  const shared = gpuNeeds(gguf, { ...spec, sharedContext: true }, STEP);
  return own.work + own.output + own.block * gguf.blockCount + shared.work + shared.output + shared.block;
}

describe.skipIf(!testGpu)(`a daemon ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("uses the adapter that is named, and says so everywhere", async () => {
    daemon = await startDaemon({ env: { ...NAMED, SERVICE_GPU_MEMORY: String(await memoryForMore()) } });
    expect(daemon.logs()).toContain(`GPU: ${testGpu?.name} (${testGpu?.backend})"`);
    expect(daemon.logs()).toMatch(/Ready: .*layers on the GPU/);

    const status = await ask("/api/system/status");
    expect(status).toMatchObject({
      stats: { gpu_available: true },
      gpu: {
        available: true,
        adapter: testGpu?.name,
        adapters: expect.arrayContaining([expect.objectContaining({ name: testGpu?.name, usable: true })]),
      },
    });
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toContain("service_gpu_available 1\n");
    expect(metrics).toMatch(/service_gpu_info\{name=".*"\} 1\n/);
    expect(metrics).toMatch(/service_model_gpu_layers\{model="daybreak-mini"\} [1-9]/);

    expect(await ask("/api/generate", { prompt: "Hello", max_tokens: 4 })).toMatchObject({ done: true });
    const part = { alias: "part", path: SHIPPED_MODEL, gpu_layers: 3 };
    expect(await ask("/api/models/load", part)).toMatchObject({ status: "loaded", gpu_layers: 2 });
    expect(daemon.logs()).toMatch(/Only 2 of its .* beside the other models/);
    await ask("/api/models/daybreak-mini/unload", {});
    expect(await ask("/api/models/load", { alias: "daybreak-mini", gpu_layers: 0 })).toMatchObject({
      gpu_layers: 0,
    });
  });

  test("lets no process load native code in sandbox mode, whatever else is asked for", async () => {
    daemon = await startDaemon({ env: { ...NAMED, SERVICE_SANDBOX: "true" } });
    expect(daemon.logs()).toContain("No GPU: models run on the CPU. Sandbox mode forbids native code");
    expect(
      await ask("/api/models/load", { alias: "other", path: SHIPPED_MODEL, gpu_layers: -1 }),
    ).toMatchObject({
      gpu_layers: 0,
    });
    expect(await ask("/api/system/status")).toMatchObject({ stats: { gpu_available: false } });
    if (process.platform !== "linux") return;
    const engines = childrenOf(daemon.pid);
    expect(engines).toHaveLength(2);
    for (const engine of engines) {
      expect(engine).toContain("--permission");
      expect(engine).not.toContain("--allow-addons");
    }
  });
});

test(
  "a GPU that is required and not there is an error that says why",
  { timeout: GPU_TEST_TIMEOUT_MS },
  async () => {
    daemon = await startDaemon({
      env: { SERVICE_GPU_MODE: "require", SERVICE_GPU_ADAPTER: "no such adapter" },
    });
    expect(await ask("/api/models/load", { alias: "daybreak-mini" })).toMatchObject({
      error: { type: "model_error", code: "gpu_unavailable" },
    });
    expect(await ask("/api/models/load", { alias: "daybreak-mini", gpu_layers: 0 })).toMatchObject({
      status: "loaded",
    });
  },
);

/** Command lines of the processes that a process has started, their children included. */
function childrenOf(parent: number): string[] {
  const found: string[] = [];
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, ppid] = /^PPid:\s+(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      if (Number(ppid) !== parent) continue;
      const commandLine = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      if (commandLine.includes("engine-process")) found.push(commandLine);
      found.push(...childrenOf(Number(pid)));
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}
