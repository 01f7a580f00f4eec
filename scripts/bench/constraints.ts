#!/usr/bin/env node
import { toLlamaSchema } from "../../src/grammar/to-llama-schema.ts";
import { cpus, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import type { Engine } from "../../src/engine/engine.ts";
import { prepareEngine } from "../../src/engine/engine-image.ts";
import type { OutputFormat } from "../../src/engine/protocol/generation.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { compileSchema } from "../../src/grammar/compile-grammar.ts";
import { REAL_SCHEMAS } from "../../test/conformance/real-schemas.ts";
import { generated } from "../../test/support/generated.ts";
import { ensureBenchModel } from "./cpu/bench-models.ts";
import { markdownTable } from "./daemon/statistics.ts";
import { median } from "./daemon/statistics.ts";

const HELP = `What it costs to keep each token to a schema, with a vocabulary of 128,256 tokens.

  node scripts/bench/constraints.ts [options]

  --rounds N     rounds in which all take turns, of which the medians are printed (default 5)
  --tokens N     tokens of each answer at most (default 96)
  --folder DIR   where the model is made (default: the system's temporary folder)

The model has random weights and almost no layers, so that it is the sampling that takes time. It would rather write anything
but JSON: most of its choices are refused, and then the grammar is asked about the whole vocabulary. That is the worst
case; a model that was trained writes what fits, and each token is looked at once. "ours" are grammars of our own,
"llama.cpp" those that it makes of the same schemas.`;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    tokens: { type: "string", default: "96" },
    folder: { type: "string", default: path.join(tmpdir(), "daybreak-bench") },
    help: { type: "boolean", short: "h", default: false },
  },
});

const TIMEOUT_MS = 300_000;
const ANY: OutputFormat = { type: "text" };
const SCHEMAS: Readonly<Record<string, object>> = {
  "any object": { type: "object" },
  "read a file": Object(REAL_SCHEMAS["read a file"]),
  "several edits": Object(REAL_SCHEMAS["several edits"]),
};

if (values.help) console.log(HELP);
else await run(Number(values.rounds), Number(values.tokens));

async function run(rounds: number, tokens: number): Promise<void> {
  const cases: [string, OutputFormat][] = [
    ["no format", ANY],
    ["a grammar that allows anything", { type: "grammar", grammar: "root ::= .*" }],
  ];
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    const { grammar } = compileSchema(schema, { allowsUndeclared: false });
    cases.push([`${name}, ours`, { type: "grammar", grammar }]);
    cases.push([`${name}, llama.cpp`, { type: "json_schema", schema: toLlamaSchema(schema).schema }]);
  }
  const engine = await startEngine();
  const times = new Map<string, number[]>(cases.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, format] of cases)
      times.get(name)?.push(await microsecondsPerToken(engine, format, tokens, round));
  }
  await engine.close();
  const free = median(times.get("no format") ?? []);
  console.log(`${cpus()[0]?.model ?? "unknown processor"}, medians of ${rounds} rounds`);
  console.log(
    markdownTable(
      ["answer", "µs a token", "more than without"],
      [...times].map(([name, each]) => [name, median(each).toFixed(0), (median(each) - free).toFixed(0)]),
    ),
  );
}

async function startEngine(): Promise<Engine> {
  const { wasmPath, heapLimitBytes } = await prepareEngine({
    cacheDir: path.join(values.folder, "engine"),
    kernels: "auto",
  });
  const start = createEngineStarter({
    loadTimeoutMs: TIMEOUT_MS,
    stallTimeoutMs: TIMEOUT_MS,
    wasmPath,
    heapLimitBytes,
  });
  return await start({
    modelFiles: [ensureBenchModel(values.folder, "wide", "Q8_0")],
    adapters: [],
    purpose: "generate",
    contextSize: 1024,
    sharedContext: false,
    gpuLayers: 0,
    slots: 1,
    threads: 1,
    batchSize: 128,
    flashAttention: "auto",
    contextShift: false,
  });
}

async function microsecondsPerToken(
  engine: Engine,
  format: OutputFormat,
  tokens: number,
  round: number,
): Promise<number> {
  let spent = 0;
  let written = 0;
  for (let seed = round * 1000; written < tokens; seed += 1) {
    const events = generated(
      engine,
      {
        input: { kind: "prompt", prompt: "a" },
        maxTokens: tokens,
        stop: [],
        sampling: { temperature: 1, topK: 40, seed },
        format,
        cachePrompt: true,
      },
      new AbortController().signal,
    );
    for await (const event of events) {
      if (event.type !== "done") continue;
      spent += event.timings.completionMs;
      written += event.usage.completionTokens;
    }
  }
  return (spent / written) * 1000;
}
