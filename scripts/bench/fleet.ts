#!/usr/bin/env node
import { parseArgs } from "node:util";
import { ensureBenchModel, QUANTIZATIONS, SHAPES } from "./cpu/bench-models.ts";
import { BENCH_CACHE, chosen, SHAPE_NAMES } from "./cpu/options.ts";
import { measureFleet } from "./fleet/measure-fleet.ts";

const HELP = `Measures what it costs to be answered by another machine.

  node scripts/bench/fleet.ts [--runs N] [--tokens N] [--model FILE | --shape NAME]

Two real daemons and a real nats-server (on the PATH) on this machine, and a small model of random
weights that only one of them has. The same requests go alternately to that one and to the other, which passes them on.
First tokens are those of short answers, five for each whole one, after 150 of them that do not count.

  --runs N       alternating whole answers of each side (default 40)
  --tokens N     tokens of each whole answer (default 512)
  --model FILE   another model, in GGUF
  --shape NAME   another model of random weights, of: ${Object.keys(SHAPES).join(", ")}
  --quantization NAME  of that one, of: ${QUANTIZATIONS.join(", ")} (default Q8_0)
  --cache DIR    where that one is kept (default ${BENCH_CACHE})`;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "40" },
    tokens: { type: "string", default: "512" },
    model: { type: "string" },
    shape: { type: "string" },
    quantization: { type: "string", default: "Q8_0" },
    cache: { type: "string", default: BENCH_CACHE },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) console.log(HELP);
else {
  const { shape, cache, quantization } = values;
  const model =
    shape === undefined
      ? values.model
      : ensureBenchModel(
          cache,
          chosen("shape", shape, SHAPE_NAMES),
          chosen("quantization", quantization, QUANTIZATIONS),
        );
  const workload = { runs: Number(values.runs), tokens: Number(values.tokens) };
  console.log(await measureFleet({ ...workload, ...(model !== undefined && { model }) }));
}
