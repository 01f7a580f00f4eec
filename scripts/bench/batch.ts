#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import OpenAI, { toFile } from "openai";
import type { Engine } from "../../src/engine/engine.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
} from "../../test/support/engine-fixture.ts";
import { generated } from "../../test/support/generated.ts";
import { startDaemon, type TestDaemon } from "../../test/support/start-daemon.ts";
import { benchPrompt, writeBenchModel } from "./daemon/bench-model.ts";
import { markdownTable, median, spread } from "./daemon/statistics.ts";

const HELP = `Measures what a batch makes of an engine: tokens per second, against the engine alone with all slots busy.

  node scripts/bench/batch.ts [--model FILE.gguf] [--runs N] [--lines N] [--tokens N]

  --model FILE  the model to generate with; default: one of random weights, made for the run
  --runs N      alternating runs of each side (default 3)
  --lines N     requests of each run (default 64)
  --tokens N    most tokens of each answer (default 48)

Both sides answer the same prompts, of which each run has its own, on one thread with four slots. A batch is timed from its
creation to its last status, with reading the file and writing the output.`;

const SLOTS = 4;
const CONTEXT = 4096;
const BATCH_SIZE = 64;
const PROMPT_TOKENS = 32;
const LOOK_MS = 20;

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    runs: { type: "string", default: "3" },
    lines: { type: "string", default: "64" },
    tokens: { type: "string", default: "48" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) console.log(HELP);
else await main(Number(values.runs), Number(values.lines), Number(values.tokens));

async function main(runs: number, lines: number, maxTokens: number): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-bench-"));
  try {
    const model = path.resolve(values.model ?? path.join(folder, "bench.gguf"));
    if (!values.model) writeBenchModel(model);
    const [alone, batch]: [number[], number[]] = [[], []];
    for (let run = 0; run < runs; run += 1) {
      const prompts = Array.from({ length: lines }, (_, at) => benchPrompt(PROMPT_TOKENS, run * lines + at));
      alone.push(await engineAlone(model, prompts, maxTokens));
      batch.push(await asBatch(model, prompts, maxTokens));
    }
    const ratios = batch.map((rate, at) => rate / (alone[at] ?? Number.NaN));
    console.log(`${os.cpus()[0]?.model.trim()}, one thread, ${SLOTS} slots, ${lines} requests\n`);
    console.log(
      markdownTable(
        ["", "tokens/s"],
        [
          ["the engine alone, all slots busy", spread(alone)],
          ["a batch", spread(batch)],
          ["ratio", `${median(ratios).toFixed(3)} (${ratios.map((ratio) => ratio.toFixed(3)).join(", ")})`],
        ],
      ),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As many calls as there are slots, each followed by the next. */
async function engineAlone(model: string, prompts: readonly string[], maxTokens: number): Promise<number> {
  const engine = await startEngine(
    engineSpec(model, { slots: SLOTS, contextSize: CONTEXT / SLOTS, batchSize: BATCH_SIZE }),
  );
  try {
    const rest = [...prompts];
    const startedAt = performance.now();
    const worker = async (): Promise<number> => {
      let tokens = 0;
      for (let prompt = rest.shift(); prompt !== undefined; prompt = rest.shift())
        tokens += await answer(engine, prompt, maxTokens);
      return tokens;
    };
    const tokens = await Promise.all(Array.from({ length: SLOTS }, worker));
    return perSecond(
      tokens.reduce((sum, each) => sum + each, 0),
      startedAt,
    );
  } finally {
    await engine.close();
  }
}

async function answer(engine: Engine, prompt: string, maxTokens: number): Promise<number> {
  const events = await collect(generated(engine, promptRequest(prompt, { maxTokens }), NEVER));
  return doneOf(events).usage.completionTokens;
}

async function asBatch(model: string, prompts: readonly string[], maxTokens: number): Promise<number> {
  const settings = {
    "models-default": model,
    "models-context-size": CONTEXT / SLOTS,
    "models-slots": SLOTS,
    "engine-threads": 1,
    "engine-batch-size": BATCH_SIZE,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const daemon = await startDaemon({ args });
  try {
    return await timeBatch(daemon, prompts, maxTokens);
  } finally {
    await daemon.stop();
  }
}

async function timeBatch(
  { url }: TestDaemon,
  prompts: readonly string[],
  maxTokens: number,
): Promise<number> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any" });
  const endpoint = "/v1/completions";
  const lines = prompts.map((prompt, at) => {
    const body = { prompt, max_tokens: maxTokens, temperature: 0, seed: 1 };
    return `${JSON.stringify({ custom_id: String(at), method: "POST", url: endpoint, body })}\n`;
  });
  const file = await client.files.create({
    file: await toFile(Buffer.from(lines.join("")), "bench.jsonl"),
    purpose: "batch",
  });
  const startedAt = performance.now();
  const request = { input_file_id: file.id, endpoint, completion_window: "24h" } as const;
  let batch = await client.batches.create(request);
  while (batch.status !== "completed") {
    if (batch.status === "failed") throw new Error(JSON.stringify(batch.errors));
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    batch = await client.batches.retrieve(batch.id);
  }
  if (batch.request_counts?.failed) throw new Error(`${batch.request_counts.failed} requests have failed`);
  return perSecond(batch.usage?.output_tokens ?? 0, startedAt);
}

function perSecond(tokens: number, startedAt: number): number {
  return (1000 * tokens) / (performance.now() - startedAt);
}
