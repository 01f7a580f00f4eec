#!/usr/bin/env node
import { parseArgs } from "node:util";
import type { Engine } from "../../src/engine/engine.ts";
import { generated } from "../../test/support/generated.ts";
import { ensureBenchModel, QUANTIZATIONS, SHAPES } from "./cpu/bench-models.ts";
import { BENCH_CACHE, chosen, CLOCKS, SHAPE_NAMES } from "./cpu/options.ts";
import { readClock } from "./cpu/processor-time.ts";
import { describeMachine } from "./cpu/results.ts";
import { spread } from "./daemon/statistics.ts";
import { startGuessingEngine, TEXTS } from "./speculation/guessing-engine.ts";

const HELP = `Measures how long it takes to go on with an answer from its tokens, and how long it took to generate them.

  node scripts/bench/moved-answer.ts [options]

  --shape NAME         of: ${Object.keys(SHAPES).join(", ")} (default 0.5B)
  --quantization NAME  of: ${QUANTIZATIONS.join(", ")} (default Q4_K_M)
  --threads N          (default 1)
  --tokens N           of the answer (default 256)
  --runs N             alternating runs (default 5)
  --clock CLOCK        processor (default), time that the engine was running, on Linux; or wall
  --cache DIR          where models are kept (default ${BENCH_CACHE})

A model with random weights writes random text. Figures are medians with the smallest and largest in brackets.`;

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "0.5B" },
    quantization: { type: "string", default: "Q4_K_M" },
    threads: { type: "string", default: "1" },
    tokens: { type: "string", default: "256" },
    runs: { type: "string", default: "5" },
    clock: { type: "string", default: "processor" },
    cache: { type: "string", default: BENCH_CACHE },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await main();

async function main(): Promise<void> {
  const [threads, tokens, runs] = [Number(values.threads), Number(values.tokens), Number(values.runs)];
  const clock = chosen("clock", values.clock, CLOCKS);
  const shape = chosen("shape", values.shape, SHAPE_NAMES);
  const model = ensureBenchModel(
    values.cache,
    shape,
    chosen("quantization", values.quantization, QUANTIZATIONS),
  );
  const engine = await startGuessingEngine({ model, cache: values.cache, threads });
  try {
    const [whole, moved, ratios]: [number[], number[], number[]] = [[], [], []];
    for (let run = 0; run <= runs; run++) {
      const now = (): number => readClock(clock, engine.pid, threads);
      const first = await answer(engine, { tokens, seed: run }, now);
      const second = await answer(engine, { tokens, seed: run, given: first.ids.slice(0, -1) }, now);
      if (run > 0 && second.replaced > 0) throw new Error(`${second.replaced} tokens would have been others`);
      // The first run compiles.
      if (run === 0) continue;
      whole.push(first.ms / 1000);
      moved.push(second.ms / 1000);
      ratios.push(second.ms / first.ms);
    }
    const took = `${tokens} tokens generated: ${spread(whole)} s; read: ${spread(moved)} s (${clock} time)`;
    console.log(`${describeMachine()}\n\n${took}; ratio ${spread(ratios, 2)}`);
  } finally {
    await engine.close();
  }
}

interface MovedAnswer {
  readonly tokens: number;
  readonly seed: number;
  readonly given?: number[];
}

/** The tokens of an answer, how many of those it was given would have been others, and how long it took. */
async function answer(engine: Engine, { tokens, seed, given }: MovedAnswer, now: () => number) {
  const from = now();
  const ids: number[] = [];
  let replaced = 0;
  const request = {
    input: { kind: "prompt" as const, prompt: "Once upon a time" },
    maxTokens: tokens,
    stop: [],
    sampling: { ...TEXTS.random, seed, guessTokens: 0, ignoreEos: true },
    format: { type: "text" as const },
    cachePrompt: false,
    reportsTokens: true,
    ...(given && { given }),
  };
  for await (const event of generated(engine, request, new AbortController().signal)) {
    if (event.type !== "tokens") continue;
    ids.push(...event.ids);
    replaced += event.replaced;
  }
  return { ids, replaced, ms: now() - from };
}
