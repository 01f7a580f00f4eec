#!/usr/bin/env node
import { parseArgs } from "node:util";
import { ensureBenchModel, QUANTIZATIONS, SHAPES } from "./cpu/bench-models.ts";
import { BENCH_CACHE, chosen, CLOCKS, SHAPE_NAMES } from "./cpu/options.ts";
import { readClock } from "./cpu/processor-time.ts";
import { describeMachine } from "./cpu/results.ts";
import { markdownTable, median, spread } from "./daemon/statistics.ts";
import { measureAnswer, startGuessingEngine, TEXTS } from "./speculation/guessing-engine.ts";

const HELP = `Measures what a step of several tokens costs, as a multiple of what one of a single token does.

  node scripts/bench/steps.ts [options]

  --shape NAME         of: ${Object.keys(SHAPES).join(", ")} (default 0.5B)
  --quantization NAME  of: ${QUANTIZATIONS.join(", ")} (default Q4_K_M)
  --sizes LIST         tokens of a step: 2, 3, or a multiple of 4, as guesses make them (default 2,3,4,8,16)
  --threads N          (default 1)
  --steps N            steps of an answer (default 32)
  --runs N             alternating runs of each (default 7)
  --clock CLOCK        processor (default), time that the engine was running, on Linux; or wall
  --cache DIR          where models are kept (default ${BENCH_CACHE})

A model with random weights writes one word over and over, so that all guesses are right and each step has as many tokens as it
may. Each run of a size is paired with one without guesses right before it; figures are medians of the pairs with the smallest
and largest in brackets.`;

/** Tokens until a guess is as long as it may be. */
const SKIPPED = 64;

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "0.5B" },
    quantization: { type: "string", default: "Q4_K_M" },
    sizes: { type: "string", default: "2,3,4,8,16" },
    threads: { type: "string", default: "1" },
    steps: { type: "string", default: "32" },
    runs: { type: "string", default: "7" },
    clock: { type: "string", default: "processor" },
    cache: { type: "string", default: BENCH_CACHE },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await main();

async function main(): Promise<void> {
  const [threads, steps, runs] = [Number(values.threads), Number(values.steps), Number(values.runs)];
  const clock = chosen("clock", values.clock, CLOCKS);
  const model = ensureBenchModel(
    values.cache,
    chosen("shape", values.shape, SHAPE_NAMES),
    chosen("quantization", values.quantization, QUANTIZATIONS),
  );
  const engine = await startGuessingEngine({ model, cache: values.cache, threads });
  const stepMs = async (size: number): Promise<number> => {
    const length = { tokens: SKIPPED + steps * size, skipped: SKIPPED };
    const sampling = { ...TEXTS.oneWord, guessTokens: size - 1 };
    const { tokens, kept, ms } = await measureAnswer(engine, "Once upon a time", sampling, length, () =>
      readClock(clock, engine.pid, threads),
    );
    const taken = tokens - kept;
    if (Math.abs(tokens / taken - size) > size / 10)
      throw new Error(`steps had ${tokens / taken} tokens, not ${size}`);
    return ms / taken;
  };
  try {
    const sizes = values.sizes.split(",").map(Number);
    const alone: number[] = [];
    const pairs = sizes.map((): number[] => []);
    for (let run = 0; run <= runs; run++) {
      for (const [index, size] of sizes.entries()) {
        const one = await stepMs(1);
        const several = await stepMs(size);
        // The first run compiles.
        if (run === 0) continue;
        alone.push(one);
        pairs[index]!.push(several / one);
      }
    }
    console.log(`${describeMachine()}\n\nA step of one token: ${spread(alone)} ms (${clock} time)\n`);
    const rows = sizes.map((size, index) => [
      String(size),
      spread(pairs[index]!, 2),
      (size / median(pairs[index]!)).toFixed(2),
    ]);
    console.log(
      markdownTable(["tokens of a step", "cost in steps of one", "tokens for the cost of one"], rows),
    );
  } finally {
    await engine.close();
  }
}
