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

/** Tokens in a step; with a number of its own no model is loaded twice, however slow the machine is. */
const STEP = 16;

const NAMED = {
  SERVICE_GPU_MODE: "auto",
  SERVICE_GPU_ADAPTER: testGpu?.name ?? "",
  SERVICE_ENGINE_BATCH_SIZE: String(STEP),
};

/** No model but those that a test loads. */
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

/** Everything that the daemon reports from now on. */
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

/** Ends the model's engine in mid-answer, as a driver does that crashes; resolves to the last line of the answer. */
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

/** Bytes of the GPU for the tiny model as the daemon loads it, and for two layers of it once more. */
async function memoryForMore(): Promise<number> {
  const gguf = await createGgufInspector()([TINY]);
  const { models } = configSchema.parse({});
  const spec = { contextSize: Math.min(gguf.contextLength, BASE_CONTEXT), slots: models.slots };
  const own = gpuNeeds(gguf, { ...spec, sharedContext: false }, STEP);
  const shared = gpuNeeds(gguf, { ...spec, sharedContext: true }, STEP);
  return own.work + own.output + own.block * gguf.blockCount + shared.work + shared.output + shared.block;
}

describe.skipIf(!testGpu)(`a daemon ${onTestGpu}`, { timeout: GPU_TEST_TIMEOUT_MS }, () => {
  test("uses the adapter that is named, and says so everywhere", async () => {
    const memory = String(await memoryForMore());
    daemon = await startDaemon({
      // Else the model that is idle would make room.
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
      // A number of layers wins over the mode, which decides where there is none.
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
      const told = [...events().matchAll(/^event: (gpu-.*)\ndata: .*"reason":"(.*?)"/gm)].map(
        ([, name, reason]) => `${name}: ${reason}`,
      );
      expect(told).toEqual([
        expect.stringMatching(/^gpu-lost: killed by SIGSEGV/),
        expect.stringMatching(/^gpu-lost: killed by SIGSEGV/),
        "gpu-abandoned: the GPU failed 2 times in 10 minutes",
      ]);
    },
  );

  test("lets no process load native code with a required sandbox, whatever else is asked for", async () => {
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

/** Command lines of the processes that a process has started, their children included. */
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
      // It ended meanwhile.
    }
  }
  return found;
}
