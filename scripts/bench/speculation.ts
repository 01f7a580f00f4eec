#!/usr/bin/env node
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import type { Sampling } from "../../src/engine/protocol/generation.ts";
import { ensureBenchModel, QUANTIZATIONS, type ShapeName, SHAPES } from "./cpu/bench-models.ts";
import { type Clock, readClock } from "./cpu/processor-time.ts";
import { spread } from "./daemon/statistics.ts";
import {
  type MeasuredAnswer,
  measureAnswer,
  startGuessingEngine,
  TEXTS,
} from "./speculation/guessing-engine.ts";

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
  const { draft, cache } = values;
  const engine = await startGuessingEngine({ model: modelFile(), draft, cache, threads });
  try {
    console.log("| text | without, tokens/s | with, tokens/s | ratio | guessed | right |");
    console.log("|---|---|---|---|---|---|");
    for (const [text, sampling] of cases()) {
      const rates: { without: number[]; with: number[] } = { without: [], with: [] };
      let last: MeasuredAnswer | undefined;
      for (let run = 0; run <= runs; run++) {
        for (const side of ["without", "with"] as const) {
          const settings = { ...sampling, seed: run, guessTokens: side === "with" ? guess : 0 };
          const answer = await measureAnswer(engine, values.prompt, settings, { tokens, skipped: 1 }, () =>
            readClock(clock, engine.pid, threads),
          );
          if (side === "with") last = answer;
          // The first run compiles.
          if (run > 0) rates[side].push((answer.tokens / answer.ms) * 1000);
        }
      }
      const ratios = rates.with.map((rate, run) => rate / rates.without[run]!);
      const cells = [spread(rates.without), spread(rates.with), spread(ratios, 2), last?.guessed, last?.kept];
      console.log(`| ${text} | ${cells.join(" | ")} |`);
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

function modelFile(): string {
  const shapes = Object.keys(SHAPES).filter((name): name is ShapeName => name in SHAPES);
  return (
    values.model ??
    ensureBenchModel(values.cache, chosen("shape", shapes), chosen("quantization", QUANTIZATIONS))
  );
}

function cases(): readonly (readonly [string, Sampling])[] {
  if (values.model !== undefined) return [["its own", { temperature: 0 }]];
  return [
    ["one word over and over", TEXTS.oneWord],
    ["four words at random", TEXTS.fourWords],
    ["at random", TEXTS.random],
  ];
}
