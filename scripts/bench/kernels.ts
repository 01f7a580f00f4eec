#!/usr/bin/env node
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { FORMATS, TYPE, type TypeName } from "../../test/support/dequantize.ts";
import { KernelHost } from "../../test/support/kernel-host.ts";
import { describeMachine } from "./cpu/results.ts";
import { spread } from "./daemon/statistics.ts";
import { measureAttention } from "./kernels/measure-attention.ts";
import { randomWeights } from "./kernels/random-weights.ts";
import { timed } from "./kernels/timed.ts";

const HELP = `Speed of the matrix kernels by themselves, in billions of multiplications and additions a second (GMAC/s).

  node scripts/bench/kernels.ts [options] [OBJECT...]

  OBJECT           objects to compare (default: wasm/kernels.o); their runs alternate
  --types LIST     formats of the weights (default: all)
  --columns LIST   columns of activations (default: 1,2,3,4,6,8,16,64)
  --rows N         rows of the weights (default 4096)
  --k N            length of a row (default 2048)
  --seconds N      time for each figure and object (default 0.5)
  --places N       compile each object so many times (default 1): how fast a loop runs may depend on where its code lies,
                   and V8 puts each copy elsewhere. Figures are then the median with the smallest and largest
  --as-in-file     leave the weights as they lie in a file, also where the engine repacks them
  --subnormal      let the halves that scale blocks be subnormal, with which processors may calculate slowly
  --attention      measure flash attention instead: for each type of the cache, --columns are queries that share a head
                   of --k tokens, 64 numbers to a key and to a value

One thread. With one column large weights come from memory, small ones (--rows 512) from a cache. A figure is the
median of short runs.`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    types: { type: "string", default: [...Object.keys(FORMATS), "F32", "F16", "BF16"].join(",") },
    columns: { type: "string", default: "1,2,3,4,6,8,16,64" },
    rows: { type: "string", default: "4096" },
    k: { type: "string", default: "2048" },
    seconds: { type: "string", default: "0.5" },
    places: { type: "string", default: "1" },
    "as-in-file": { type: "boolean", default: false },
    subnormal: { type: "boolean", default: false },
    attention: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

/** 256 MiB: weights, activations, results and the work buffer. */
const PAGES = 4096;
/** Runs until V8 has replaced its baseline code. */
const WARM_UP_MS = 150;

if (values.help) console.log(HELP);
else {
  console.log(describeMachine());
  await (values.attention ? showAttention() : main());
}

async function showAttention(): Promise<void> {
  const queries = values.columns.split(",").map(Number);
  console.log([" queries", ...queries.map((count) => String(count).padStart(8))].join(""));
  const rates = await measureAttention(queries, Number(values.k), Number(values.seconds) * 1000);
  for (const [type, ofType] of rates)
    console.log([type, ...ofType.map((rate) => rate.toFixed(1))].map((text) => text.padStart(8)).join(""));
}

async function main(): Promise<void> {
  const objects = positionals.length > 0 ? positionals.map((file) => pathToFileURL(file)) : [undefined];
  const places = Array.from({ length: Number(values.places) }, (_, place) => place);
  // V8 compiles the same bytes once, so each copy declares another memory.
  const hosts = await Promise.all(
    objects.flatMap((object) =>
      places.map((place) => KernelHost.start({ pages: PAGES + place, ...(object && { object }) })),
    ),
  );
  const columnCounts = values.columns.split(",").map(Number);
  const width = places.length === 1 ? 8 : 20;
  console.log("columns".padStart(8) + columnCounts.map((count) => String(count).padStart(width)).join(""));
  for (const name of values.types.split(",")) {
    const type = typeNamed(name);
    const rates = columnCounts.map((columns) => measure(hosts, type, columns));
    for (const index of objects.keys()) {
      const cells = rates.map((of) => cell(of.slice(index * places.length, (index + 1) * places.length)));
      console.log((index === 0 ? name : "").padStart(8) + cells.join(""));
    }
  }
}

/** A rate, or those of several places. */
function cell(rates: readonly number[]): string {
  return rates.length === 1 ? rates[0]!.toFixed(1).padStart(8) : ` ${spread(rates).padStart(19)}`;
}

function typeNamed(name: string): TypeName {
  const found = Object.keys(TYPE).find((candidate): candidate is TypeName => candidate === name);
  if (!found) throw new TypeError(`no type ${name}; there are ${Object.keys(TYPE).join(", ")}`);
  return found;
}

function measure(hosts: readonly KernelHost[], type: TypeName, columns: number): number[] {
  const [rows, k] = [Number(values.rows), Number(values.k)];
  const weights = randomWeights(type, rows, k, values.subnormal);
  const activations = Float32Array.from({ length: columns * k }, (_, index) => Math.sin(index * index));
  const ready = hosts.map((host) =>
    host.prepare({
      type: TYPE[type],
      weights,
      rows,
      activations,
      k,
      workSize: 2 ** 24,
      ...(!values["as-in-file"] && { backends: 1 }),
    }),
  );
  for (const problem of ready) {
    timed(() => problem.run(), WARM_UP_MS);
    if (problem.read().fellBack) throw new Error(`the kernels do not cover ${type}, ${rows} rows of ${k}`);
  }
  const slices = 7;
  const times = ready.map((): number[] => []);
  for (let slice = 0; slice < slices; slice++) {
    for (const [index, problem] of ready.entries())
      times[index]!.push(timed(() => problem.run(), (Number(values.seconds) * 1000) / slices));
  }
  return times.map((of) => (rows * k * columns) / of.toSorted((a, b) => a - b)[slices >> 1]! / 1e6);
}
