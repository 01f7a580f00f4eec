#!/usr/bin/env node
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { EngineCore } from "../../src/engine/core/engine-core.ts";
import { openEngineFiles } from "../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../src/engine/host/node-platform.ts";
import { prepareEngine } from "../../src/engine/engine-image.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { startDaemon, type TestDaemon } from "../../test/support/start-daemon.ts";
import { benchPrompt, writeBenchModel } from "./daemon/bench-model.ts";
import { measureLayers } from "./daemon/measure-layers.ts";
import { measureInProcess, measureOverHttp } from "./daemon/measure-stream.ts";
import { type BenchResult, type ClientsRow, renderReport } from "./daemon/render-report.ts";
import { closeConnections } from "./daemon/stream-client.ts";

const HELP = `Measures what the daemon's layers cost over the engine alone, and how it serves several clients.

  node scripts/bench/daemon.ts [--model FILE.gguf] [--runs N] [--tokens N] [--clients LIST] [--json]

  --model FILE   the model to generate with; default: one of random weights, made for the run
  --runs N       alternating runs of each side (default 7), and 20 times as many up to the first token
  --tokens N     tokens of each answer (default 64)
  --clients LIST how many ask at once (default 1,2,4,8,16; an empty text leaves them out)
  --json         print the raw measurements

Both sides run the same engine with one thread and the same settings; the daemon is asked over HTTP, streamed, by
Node's plain client on a connection that stays open; and by fetch(), which costs the asking program more.
Figures are medians with the smallest and largest in brackets.`;

const CONTEXT = 4096;
const SLOTS = 4;
const PROMPT_TOKENS = 32;
const BATCH_SIZE = 32;
/** Prompts that are tried, and the share of tokens that must show as text, for a prompt to be measured. */
const MAX_TRIES = 60;
const EVEN_SHARE = 0.8;

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    runs: { type: "string", default: "7" },
    tokens: { type: "string", default: "64" },
    clients: { type: "string", default: "1,2,4,8,16" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) console.log(HELP);
else await main(Number(values.runs), Number(values.tokens), values.clients.split(",").map(Number));

async function main(runs: number, tokens: number, counts: readonly number[]): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-bench-"));
  try {
    const model = path.resolve(values.model ?? path.join(folder, "bench.gguf"));
    if (!values.model) writeBenchModel(model);
    const readyMs = await repeat(runs, () => timeToReady(model));
    const daemon = await startDaemon({ args: flags(model) });
    try {
      const prompts = await useEngine(model, daemon.cacheDir, (engine) =>
        evenPrompts(engine, tokens, Math.max(1, ...counts)),
      );
      const workload = { prompt: prompts[0]!, maxTokens: tokens };
      // Another engine, which has seen no other prompt either: what its cache holds would slow it down.
      const layers = await useEngine(model, daemon.cacheDir, (engine) =>
        measureLayers(runs, workload, engine, daemon.url),
      );
      const clients = await severalClients(daemon, counts, prompts, tokens);
      const memory = await memoryOf(daemon);
      const result: BenchResult = { machine: machine(), readyMs, layers, clients, memory };
      console.log(values.json ? JSON.stringify(result, null, 2) : renderReport(result));
    } finally {
      closeConnections();
      await daemon.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Flags that make the daemon load the model with the settings of {@link loadInProcess}. */
function flags(model: string): string[] {
  const options = {
    "models-default": model,
    "models-context-size": CONTEXT,
    "models-slots": SLOTS,
    "engine-threads": 1,
    "engine-batch-size": BATCH_SIZE,
    "log-level": "warn",
  };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

function quiet(): void {}

async function useEngine<Result>(
  model: string,
  cacheDir: string,
  use: (engine: EngineCore) => Promise<Result>,
): Promise<Result> {
  const engine = await loadInProcess(model, cacheDir);
  try {
    return await use(engine);
  } finally {
    engine.close();
  }
}

async function loadInProcess(model: string, cacheDir: string): Promise<EngineCore> {
  const spec: EngineSpec = {
    modelFiles: [model],
    adapters: [],
    purpose: "generate",
    contextSize: CONTEXT,
    sharedContext: false,
    gpuLayers: 0,
    slots: SLOTS,
    threads: 1,
    batchSize: BATCH_SIZE,
    flashAttention: "auto",
    contextShift: false,
  };
  const { wasmPath } = await prepareEngine({ cacheDir, kernels: "auto" });
  const wasm = pathToFileURL(wasmPath).href;
  return await EngineCore.load(createNodePlatform(wasm, quiet), spec, openEngineFiles(spec));
}

async function timeToReady(model: string): Promise<number> {
  const start = performance.now();
  const daemon = await startDaemon({ args: flags(model) });
  const ready = performance.now() - start;
  await daemon.stop();
  return ready;
}

/**
 * Prompts that a random model answers with text all along: one that ends early, or that writes halves of characters,
 * which nobody sees before the other half, would not show when a token was ready.
 */
async function evenPrompts(engine: EngineCore, tokens: number, wanted: number): Promise<string[]> {
  const prompts: string[] = [];
  for (let salt = 0; salt < MAX_TRIES && prompts.length < wanted; salt++) {
    const prompt = benchPrompt(PROMPT_TOKENS, salt);
    const timing = await measureInProcess(engine, { prompt, maxTokens: tokens }).catch(() => undefined);
    if (timing && timing.tokens === tokens && timing.pieces > EVEN_SHARE * tokens) prompts.push(prompt);
  }
  if (prompts.length === 0) throw new Error("the model answers no prompt with text all along; try --model");
  return prompts;
}

async function severalClients(
  daemon: TestDaemon,
  counts: readonly number[],
  prompts: readonly string[],
  tokens: number,
): Promise<ClientsRow[]> {
  const results: ClientsRow[] = [];
  for (const clients of counts.filter((count) => count > 0)) {
    const start = performance.now();
    const timings = await Promise.all(
      Array.from({ length: clients }, (_, client) =>
        measureOverHttp(daemon.url, { prompt: prompts[client % prompts.length]!, maxTokens: tokens }),
      ),
    );
    const seconds = (performance.now() - start) / 1000;
    const total = timings.reduce((sum, timing) => sum + timing.tokens, 0);
    results.push({
      clients,
      tokensPerSecond: total / seconds,
      firstTokenMs: timings.map((timing) => timing.firstTokenMs),
    });
  }
  return results;
}

/** Resident bytes of the daemon, and of the daemon with its engine as it reports itself. */
async function memoryOf(daemon: TestDaemon) {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1];
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  const withEngine = /^service_memory_used_bytes (\S+)$/m.exec(metrics)?.[1];
  return { daemonBytes: Number(kib) * 1024, withEngineBytes: Number(withEngine) };
}

async function repeat(runs: number, measure: () => Promise<number>): Promise<number[]> {
  const results: number[] = [];
  for (let run = 0; run < runs; run++) results.push(await measure());
  return results;
}

function machine(): string {
  const [cpu] = os.cpus();
  return `${os.cpus().length} × ${cpu?.model.trim()}, ${os.platform()} ${os.arch()}, Node ${process.versions.node}`;
}
