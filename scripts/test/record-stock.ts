#!/usr/bin/env node
import fs from "node:fs";
import { parseArgs } from "node:util";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { type AskedLine, askedLines, sayAll, specOf } from "../../test/support/ask-comparison.ts";
import {
  engineSpec,
  SHIPPED_MODEL,
  startEngine,
  temporaryFolder,
} from "../../test/support/engine-fixture.ts";
import { compareLogprobs } from "../../test/support/forced-text.ts";
import { type Comparison, COMPARISONS } from "../../test/support/stock-comparisons.ts";
import { encodeLogprobs, TokenTable } from "../../test/support/stock-record-encoding.ts";
import {
  digestOf,
  readRecord,
  type StockAnswers,
  stockAnswers,
  type StockRecord,
  writeRecord,
} from "../../test/support/stock-record.ts";

const HELP = `Records what the stock engine answers, with which the tests compare ours (test/support/stock-record.json).

  node scripts/test/record-stock.ts [options]

  --all   record everything anew, not only what is of other models or questions than now

Run it when a test says so: after a model that ships, a comparison or @wllama/wllama has changed. All of it takes some
130 seconds of processor time, half as long on two processors.
`;

const { values } = parseArgs({
  options: { all: { type: "boolean", default: false }, help: { type: "boolean", short: "h" } },
});

/** Engines have one thread each. */
const AT_ONCE = 2;

/** Much longer than a step of a prompt takes, also beside other work. */
const TIMEOUT_MS = 600_000;

const startStockEngine = createEngineStarter({ loadTimeoutMs: TIMEOUT_MS, stallTimeoutMs: TIMEOUT_MS });

if (values.help) process.stdout.write(HELP);
else await main();

interface Answered extends StockAnswers {
  readonly digest: string;
}

async function main(): Promise<void> {
  const folder = temporaryFolder();
  const asker = await startEngine(engineSpec(SHIPPED_MODEL));
  try {
    const current = COMPARISONS.map((comparison) => {
      const spec = specOf(comparison, folder);
      return { comparison, spec, digest: digestOf(comparison, spec) };
    });
    const old: StockRecord = values.all ? { tokens: [], answers: {} } : readRecord();
    const answers = new Map<string, Answered>();
    const stale = current.filter(({ comparison, spec, digest }) => {
      if (old.answers[comparison.name]?.digest !== digest) return true;
      answers.set(comparison.name, { ...stockAnswers(comparison, spec, old), digest });
      return false;
    });
    process.stdout.write(`${stale.length} of ${current.length} are to be recorded\n`);
    const work = async (): Promise<void> => {
      for (let next = stale.shift(); next; next = stale.shift()) {
        const { comparison, spec, digest } = next;
        answers.set(comparison.name, { ...(await ask(comparison, spec, asker)), digest });
        // Each by itself: what is recorded need not be asked again when this is ended.
        write(answers);
        process.stdout.write(`${comparison.name}\n`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    write(answers);
  } finally {
    await asker.close();
    fs.rmSync(folder, { recursive: true });
  }
}

function write(answers: ReadonlyMap<string, Answered>): void {
  const table = new TokenTable();
  const inOrder = COMPARISONS.flatMap(({ name }) => {
    const answer = answers.get(name);
    if (!answer) return [];
    return [[name, { ...answer, said: answer.said.map((line) => encodeLogprobs(line, table)) }] as const];
  });
  writeRecord({ tokens: table.tokens, answers: Object.fromEntries(inOrder) });
}

async function ask(comparison: Comparison, spec: EngineSpec, asker: Engine): Promise<StockAnswers> {
  const lines = await askedLines(comparison, asker);
  const said = await sayTo(spec, lines);
  if (!comparison.withOwnDifference) return { lines, said };
  const withFlash = await sayTo({ ...spec, flashAttention: "true" }, lines);
  return { lines, said, ownDifference: compareLogprobs(said.flat(), withFlash.flat()) };
}

async function sayTo(spec: EngineSpec, lines: readonly AskedLine[]): Promise<TokenLogprob[][]> {
  const engine = await startStockEngine(spec);
  try {
    return await sayAll(engine, lines);
  } finally {
    await engine.close();
  }
}
