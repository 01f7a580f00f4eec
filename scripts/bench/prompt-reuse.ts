#!/usr/bin/env node
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import type { Engine } from "../../src/engine/engine.ts";
import { engineSpec, SHIPPED_MODEL, startEngine } from "../../test/support/engine-fixture.ts";
import { measureReuse, PROMPT_PATTERNS, type Reuse } from "../../test/support/prompt-patterns.ts";
import { markdownTable } from "./daemon/statistics.ts";

const HELP = `How much of prompts is read only once, and what that saves.

  node scripts/bench/prompt-reuse.ts [options]

  --model FILE   a GGUF file (default: the model that ships)
  --bytes N      of the store of prompts (default 512 MiB)
  --shared       slots share one context, instead of one each

Four slots with 2048 tokens each. Each pattern runs on a fresh engine, without a store of prompts and with it. "reused" are
tokens that were not read, of those with which an earlier prompt or its answer began as well.`;

const { values } = parseArgs({
  options: {
    model: { type: "string", default: SHIPPED_MODEL },
    bytes: { type: "string", default: String(512 * 1024 ** 2) },
    shared: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await run();

interface Measured extends Reuse {
  readonly ms: number;
}

async function run(): Promise<void> {
  const rows: string[][] = [];
  for (const name of PROMPT_PATTERNS.keys()) {
    const without = await measure(name, 0);
    const withStore = await measure(name, Number(values.bytes));
    rows.push([name, share(without), share(withStore), seconds(without), seconds(withStore)]);
  }
  console.log(`${cpus()[0]?.model}, one thread\n`);
  console.log(markdownTable(["pattern", "without", "with the store", "time without", "time with"], rows));
}

async function measure(name: string, promptCacheBytes: number): Promise<Measured> {
  const spec = { contextSize: 2048, sharedContext: values.shared, batchSize: 512, promptCacheBytes };
  const engine: Engine = await startEngine(engineSpec(values.model, spec));
  try {
    const startMs = performance.now();
    const reuse = await measureReuse(engine, name);
    return { ...reuse, ms: performance.now() - startMs };
  } finally {
    await engine.close();
  }
}

function share({ reused, reusable }: Reuse): string {
  return `${reused} of ${reusable} (${((100 * reused) / reusable).toFixed(1)} %)`;
}

function seconds({ ms }: Measured): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
