import fs from "node:fs";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { BASE_CONTEXT } from "../../src/models/loading/choose-settings.ts";
import { configSchema } from "../../src/config/schema.ts";
import { gpuNeeds } from "../../src/engine/gpu/gpu-memory.ts";
import { createGgufInspector } from "../../src/models/gguf/inspect-gguf.ts";
import { ENDLESS_LIST } from "../support/certain-requests.ts";
import { enginePids } from "../support/daemon-children.ts";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { GPU_TEST_TIMEOUT_MS, onTestGpu, testGpu } from "../support/test-gpu.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const folder = temporaryFolder();
const TINY = writeModel(folder, "tiny", tinyLlama());
afterAll(() => fs.rmSync(folder, { recursive: true }));

let daemon: TestDaemon | undefined;

afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

/** Batch size. With an explicit one a model is never reloaded on a slow machine. */
const STEP = 16;

const NAMED = {
  SERVICE_GPU_MODE: "auto",
  SERVICE_GPU_ADAPTER: testGpu?.name ?? "",
  SERVICE_ENGINE_BATCH_SIZE: String(STEP),
};

/** Configuration without models at the start. */
const BARE = ["--models-load", ""];

async function send(path: string, body?: object): Promise<Response> {
  return await fetch(`${daemon?.url}${path}`, {
    ...(body && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
}

async function ask(path: string, body?: object): Promise<Record<string, unknown>> {
  const answer: Record<string, unknown> = await (await send(path, body)).json();
  return answer;
}

async function metrics(): Promise<string> {
  return await (await send("/metrics")).text();
}

/** Collects the daemon's events from now on. */
async function watchEvents(): Promise<() => string> {
  const { body } = await send("/api/events");
  let text = "";
  void body?.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write: (part) => {
        text += part;
      },
    }),
  );
  return () => text;
}

/** Kills the model's engine during an answer, as a driver crash does; resolves to the last line of the answer. */
async function crashInAnswer(model: string): Promise<unknown> {
  const { body } = await send("/api/generate", { model, prompt: "a", format: ENDLESS_LIST, stream: true });
  let text = "";
  let isKilled = false;
  for await (const part of body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (!isKilled) for (const pid of enginePids(daemon?.pid ?? 0)) process.kill(pid, "SIGSEGV");
    isKilled = true;
  }
  return JSON.parse(text.trimEnd().split("\n").at(-1) ?? "");
}

/** GPU memory of the tiny model, and of two of its layers. */
async function memoryForMore(): Promise<number> {
  const gguf = await createGgufInspector()([TINY]);
  const { models } = configSchema.parse({});
  const spec = { contextSize: Math.min(gguf.contextLength, BASE_CONTEXT), slots: models.slots };
  const own = gpuNeeds(gguf, { ...spec, sharedContext: false }, STEP);
  const shared = gpuNeeds(gguf, { ...spec, sharedContext: true }, STEP);
  return own.work + own.output + own.block * gguf.blockCount + shared.work + shared.output + shared.block;
}

describe.skipIf(!testGpu)(`a daemon ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("uses the named adapter and reports it", async () => {
    const memory = String(await memoryForMore());
    daemon = await startDaemon({
      // Otherwise the idle model would be unloaded.
      args: ["--no-auto-load"],
      env: { ...NAMED, SERVICE_GPU_MEMORY: memory, SERVICE_MODELS_DEFAULT: TINY },
    });
    expect(daemon.logs()).toContain(`GPU: ${testGpu?.name} (${testGpu?.backend})"`);
    expect(daemon.logs()).toMatch(/Ready: .*, 3 layers on the GPU/);

    const status = await ask("/api/system/status");
    expect(status).toMatchObject({
      stats: { gpu_available: true },
      gpu: {
        available: true,
        adapter: testGpu?.name,
        adapters: expect.arrayContaining([expect.objectContaining({ name: testGpu?.name, usable: true })]),
      },
    });
    const scraped = await metrics();
    expect(scraped).toContain("service_gpu_available 1\n");
    expect(scraped).toMatch(/service_gpu_info\{name=".*"\} 1\n/);
    expect(scraped).toMatch(/service_model_gpu_layers\{model=".+"\} 3\n/);

    expect(await ask("/api/generate", { prompt: "Hello", max_tokens: 4 })).toMatchObject({ done: true });
    const part = { alias: "part", path: TINY, gpu_layers: 3 };
    expect(await ask("/api/models/load", part)).toMatchObject({ status: "loaded", gpu_layers: 2 });
    await expect.poll(() => daemon?.logs()).toMatch(/Only 2 of its .* since other models use/);
  });

  test.skipIf(process.platform === "win32")(
    "has a model back on the GPU when its driver has crashed, and on the CPU after the second time",
    async () => {
      daemon = await startDaemon({ args: BARE, env: NAMED });
      const events = await watchEvents();
      // gpu_layers takes precedence over gpu.mode.
      const other = { alias: "other", path: TINY, gpu_layers: 0 };
      expect(await ask("/api/models/load", other)).toMatchObject({ status: "loaded", gpu_layers: 0 });
      await ask("/api/models/other/unload", {});
      const tale = { alias: "tale", path: TINY };
      expect(await ask("/api/models/load", tale)).toMatchObject({ status: "loaded", gpu_layers: 3 });
      for (const layers of [3, 0]) {
        expect(await crashInAnswer("tale")).toMatchObject({
          error: { type: "model_error", code: "engine_crashed" },
        });
        const answer = await ask("/api/generate", { model: "tale", prompt: "a", max_tokens: 2 });
        expect(answer).toMatchObject({ done: true });
        expect(await metrics()).toContain(`service_model_gpu_layers{model="tale"} ${layers}\n`);
      }
      expect(await metrics()).toContain("service_gpu_losses_total 2\n");
      expect(await metrics()).toContain("service_gpu_abandonments_total 1\n");
      const gpuEvents = [...events().matchAll(/^event: (gpu-.*)\ndata: .*"reason":"(.*?)"/gm)].map(
        ([, name, reason]) => `${name}: ${reason}`,
      );
      expect(gpuEvents).toEqual([
        expect.stringMatching(/^gpu-lost: killed by SIGSEGV/),
        expect.stringMatching(/^gpu-lost: killed by SIGSEGV/),
        "gpu-abandoned: the GPU failed 2 times in 10 minutes",
      ]);
    },
  );

  test("loads no native code with a required sandbox, whatever the other options", async () => {
    daemon = await startDaemon({ args: BARE, env: { ...NAMED, SERVICE_SANDBOX: "require" } });
    expect(daemon.logs()).toContain("No GPU: models run on the CPU. A required sandbox forbids native code");
    const loaded = await ask("/api/models/load", { alias: "tale", path: TINY, gpu_layers: -1 });
    expect(loaded).toMatchObject({ status: "loaded", gpu_layers: 0 });
    expect(await ask("/api/system/status")).toMatchObject({ stats: { gpu_available: false } });
    const canList = process.platform === "linux";
    const engines = canList ? childrenOf(daemon.pid) : [];
    expect(engines.length > 0).toBe(canList);
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
      args: BARE,
      env: { SERVICE_GPU_MODE: "require", SERVICE_GPU_ADAPTER: "no such adapter" },
    });
    expect(await ask("/api/models/load", { alias: "tale", path: TINY })).toMatchObject({
      error: {
        type: "model_error",
        code: "gpu_unavailable",
        message: expect.stringMatching(/^The configuration requires a GPU\. ./),
      },
    });
    const onCpu = { alias: "tale", path: TINY, gpu_layers: 0 };
    expect(await ask("/api/models/load", onCpu)).toMatchObject({ status: "loaded", gpu_layers: 0 });
  },
);

/** Command lines of the descendants of a process. */
function childrenOf(parent: number): string[] {
  const found: string[] = [];
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, ppid] = /^PPid:\s+(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      if (Number(ppid) !== parent) continue;
      const commandLine = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      if (commandLine.includes("engine-main")) found.push(commandLine);
      found.push(...childrenOf(Number(pid)));
    } catch {
      // The process has ended meanwhile.
    }
  }
  return found;
}
