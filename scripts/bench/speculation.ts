#!/usr/bin/env node
import { parseArgs } from "node:util";
import type { Sampling } from "../../src/engine/protocol/generation.ts";
import { ensureBenchModel, QUANTIZATIONS, SHAPES } from "./cpu/bench-models.ts";
import { BENCH_CACHE, chosen, CLOCKS, SHAPE_NAMES } from "./cpu/options.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { readClock } from "./cpu/processor-time.ts";
import { spread } from "./daemon/statistics.ts";
import { ensureAgreeingModels } from "./speculation/agreeing-models.ts";
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
  --draft-shape NAME   a model of --shape and a draft model of this one, in place of one with random weights
  --agreement LIST     shares of the tokens on which these two agree (default 1,0.8,0)
  --prompt TEXT        what the model is asked to go on with, with --model
  --threads N          (default 1)
  --guess N            most tokens of a guess (default 16)
  --tokens N           tokens of an answer (default 96)
  --runs N             alternating runs of each (default 5)
  --clock CLOCK        wall (default), or processor: on Linux, time that the engine was running, for a machine that other
                       programs use as well
  --cache DIR          where models are kept (default ${BENCH_CACHE})

A model with random weights is made to write what the benchmark needs: one word over and over, which is always guessed right; of
four words a random one, which looks like repetition and is mostly guessed wrong; and random text, which repeats nothing. A ratio
above 1 means that guesses are faster; figures are medians with the smallest and largest in brackets.`;

const GREEDY = { temperature: 0 } as const satisfies Sampling;

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "0.5B" },
    quantization: { type: "string", default: "Q4_K_M" },
    model: { type: "string" },
    draft: { type: "string" },
    "draft-shape": { type: "string" },
    agreement: { type: "string", default: "1,0.8,0" },
    prompt: { type: "string", default: "Once upon a time" },
    threads: { type: "string", default: "1" },
    guess: { type: "string", default: "16" },
    tokens: { type: "string", default: "96" },
    runs: { type: "string", default: "5" },
    clock: { type: "string", default: "wall" },
    cache: { type: "string", default: BENCH_CACHE },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await main();

async function main(): Promise<void> {
  console.log("| text | without, tokens/s | with, tokens/s | ratio | guessed | right |");
  console.log("|---|---|---|---|---|---|");
  for (const [files, cases] of measurements()) {
    const engine = await startGuessingEngine({ ...files, cache: values.cache, threads: count("threads") });
    try {
      for (const [text, sampling] of cases) console.log(await measure(engine, text, sampling));
    } finally {
      await engine.close();
    }
  }
}

/** A row of the table. */
async function measure(engine: Engine, text: string, sampling: Sampling): Promise<string> {
  const [threads, guess, tokens, runs] = [count("threads"), count("guess"), count("tokens"), count("runs")];
  const clock = chosen("clock", values.clock, CLOCKS);
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
  return `| ${text} | ${cells.join(" | ")} |`;
}

function count(option: "threads" | "guess" | "tokens" | "runs"): number {
  const number = Number(values[option]);
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${option} takes a number from 1`);
  return number;
}

type Case = readonly [text: string, sampling: Sampling];

/** Models and what to measure with each. */
function measurements(): readonly (readonly [
  { readonly model: string; readonly draft?: string },
  readonly Case[],
])[] {
  const { model, draft, cache } = values;
  if (model !== undefined) return [[{ model, ...(draft !== undefined && { draft }) }, [["its own", GREEDY]]]];
  const [shape, quantization] = [
    chosen("shape", values.shape, SHAPE_NAMES),
    chosen("quantization", values.quantization, QUANTIZATIONS),
  ];
  if (values["draft-shape"] === undefined) {
    return [
      [
        { model: ensureBenchModel(cache, shape, quantization) },
        [
          ["one word over and over", TEXTS.oneWord],
          ["four words at random", TEXTS.fourWords],
          ["at random", TEXTS.random],
        ],
      ],
    ];
  }
  const shapes = { model: shape, draft: chosen("draft-shape", values["draft-shape"], SHAPE_NAMES) };
  return values.agreement
    .split(",")
    .map(Number)
    .map((share) => [
      ensureAgreeingModels(cache, shapes, quantization, share),
      [[`they agree on ${Math.round(100 * share)} percent`, GREEDY]],
    ]);
}
