#!/usr/bin/env node
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import type { Engine } from "../../src/engine/engine.ts";
import { prepareEngine } from "../../src/engine/prepare-engine.ts";
import type { Sampling, Usage } from "../../src/engine/protocol/generation.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { generated } from "../../test/support/generated.ts";
import { ensureBenchModel, QUANTIZATIONS, type ShapeName, SHAPES } from "./cpu/bench-models.ts";
import { type Clock, readClock } from "./cpu/processor-time.ts";

const HELP = `Measures how much faster answers come with guessed tokens than without.

  node scripts/bench/speculation.ts [options]

  --shape NAME         of: ${Object.keys(SHAPES).join(", ")} (default 0.5B)
  --quantization NAME  of: ${QUANTIZATIONS.join(", ")} (default Q4_K_M)
  --model FILE         a model in place of one with random weights; the text is then its own
  --draft FILE         a draft model for it
  --prompt TEXT        what the model is asked to go on with, with --model
  --threads N          (default 1)
  --guess N            most tokens of a guess (default 16)
  --tokens N           tokens of an answer (default 96)
  --runs N             alternating runs of each (default 5)
  --clock CLOCK        wall (default), or processor: on Linux, time that the engine was running, for a machine that other
                       programs use as well
  --cache DIR          where models are kept (default ${defaultCache()})

A model with random weights is made to write what the benchmark needs: one word over and over, which is always guessed right; of
four words a random one, which looks like repetition and is mostly guessed wrong; and random text, which repeats nothing. A ratio
above 1 means that guesses are faster; figures are medians with the smallest and largest in brackets.`;

const CLOCKS = ["wall", "processor"] as const satisfies readonly Clock[];

/** Beyond what any logit of random weights reaches. */
const CERTAIN = 100;

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "0.5B" },
    quantization: { type: "string", default: "Q4_K_M" },
    model: { type: "string" },
    draft: { type: "string" },
    prompt: { type: "string", default: "Once upon a time" },
    threads: { type: "string", default: "1" },
    guess: { type: "string", default: "16" },
    tokens: { type: "string", default: "96" },
    runs: { type: "string", default: "5" },
    clock: { type: "string", default: "wall" },
    cache: { type: "string", default: defaultCache() },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await main();

function defaultCache(): string {
  return path.join(os.tmpdir(), "daybreak-bench-cpu");
}

async function main(): Promise<void> {
  const [threads, guess, tokens, runs] = [count("threads"), count("guess"), count("tokens"), count("runs")];
  const clock = chosen("clock", CLOCKS);
  const engine = await start(threads);
  try {
    console.log("| text | without, tokens/s | with, tokens/s | ratio | guessed | right |");
    console.log("|---|---|---|---|---|---|");
    for (const [text, sampling] of cases()) {
      const rates: { without: number[]; with: number[] } = { without: [], with: [] };
      let usage: Usage | undefined;
      for (let run = 0; run <= runs; run++) {
        for (const side of ["without", "with"] as const) {
          const settings = { ...sampling, seed: run, guessTokens: side === "with" ? guess : 0 };
          const answer = await generate(engine, settings, tokens, () =>
            readClock(clock, engine.pid, threads),
          );
          if (side === "with") usage = answer.usage;
          // The first run compiles.
          if (run > 0) rates[side].push(answer.rate);
        }
      }
      const ratios = rates.with.map((rate, run) => rate / rates.without[run]!);
      const { tokens: guessed = 0, kept = 0 } = usage?.guesses ?? {};
      console.log(
        `| ${text} | ${spread(rates.without, 1)} | ${spread(rates.with, 1)} | ${spread(ratios, 2)} | ${guessed} | ${kept} |`,
      );
    }
  } finally {
    await engine.close();
  }
}

function count(option: "threads" | "guess" | "tokens" | "runs"): number {
  const number = Number(values[option]);
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${option} takes a number from 1`);
  return number;
}

function chosen<Name extends string>(
  option: "shape" | "quantization" | "clock",
  known: readonly Name[],
): Name {
  const name = known.find((each) => each === values[option]);
  if (name === undefined) throw new Error(`--${option} takes ${known.join(", ")}, not ${values[option]}`);
  return name;
}

async function start(threads: number): Promise<Engine> {
  const { model, draft, cache } = values;
  const shapes = Object.keys(SHAPES).filter((name): name is ShapeName => name in SHAPES);
  const file =
    model ?? ensureBenchModel(cache, chosen("shape", shapes), chosen("quantization", QUANTIZATIONS));
  const { wasmPath, heapLimitBytes } = await prepareEngine({ cacheDir: cache, kernels: "auto" });
  const limits = { loadTimeoutMs: 900_000, stallTimeoutMs: 900_000, wasmPath, heapLimitBytes };
  return await createEngineStarter(limits)({
    modelFiles: [file],
    adapters: [],
    ...(draft !== undefined && { draft: { path: draft, kvBytesPerToken: 0 } }),
    purpose: "generate",
    contextSize: 2048,
    sharedContext: true,
    gpuLayers: 0,
    slots: 1,
    threads,
    batchSize: 128,
    flashAttention: "auto",
    contextShift: false,
  });
}

/** Leaves a model so many tokens to choose from. */
function among(most: number): Sampling["logitBias"] {
  return Array.from({ length: most }, (_, at) => ({ token: 300 + at, bias: CERTAIN }));
}

function cases(): readonly (readonly [string, Sampling])[] {
  if (values.model !== undefined) return [["its own", { temperature: 0 }]];
  return [
    ["one word over and over", { temperature: 0, logitBias: among(1) }],
    ["four words at random", { temperature: 5, topK: 0, topP: 1, logitBias: among(4) }],
    ["at random", { temperature: 5, topK: 0, topP: 1 }],
  ];
}

/** Tokens per second behind the first one, by the clock. */
async function generate(engine: Engine, sampling: Sampling, maxTokens: number, now: () => number) {
  const request = {
    input: { kind: "prompt" as const, prompt: values.prompt },
    maxTokens,
    stop: [],
    sampling: { ...sampling, ignoreEos: true },
    format: { type: "text" as const },
    cachePrompt: true,
  };
  let firstMs: number | undefined;
  for await (const event of generated(engine, request, new AbortController().signal)) {
    if (event.type === "text-delta") firstMs ??= now();
    if (event.type !== "done") continue;
    const { usage } = event;
    return { usage, rate: ((usage.completionTokens - 1) / (now() - (firstMs ?? 0))) * 1000 };
  }
  throw new Error("the engine did not end its answer");
}

/** Median, smallest and largest. */
function spread(numbers: readonly number[], decimals: number): string {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [low, middle, high] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((each) =>
    (each ?? 0).toFixed(decimals),
  );
  return `${middle} (${low}–${high})`;
}
