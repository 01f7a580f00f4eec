#!/usr/bin/env node
import { mkdirSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { type BenchEngine, type BenchSettings, CACHE_TYPES, type Workload } from "./cpu/bench-engine.ts";
import {
  ensureBenchModel,
  QUANTIZATIONS,
  type Quantization,
  type ShapeName,
  SHAPES,
} from "./cpu/bench-models.ts";
import { BENCH_CACHE, chosen, CLOCKS, SHAPE_NAMES } from "./cpu/options.ts";
import { installNative, startNativeEngine } from "./cpu/native-engine.ts";
import { renderResults } from "./cpu/render-results.ts";
import { type EngineName, ENGINES, type MeasurementKey, Results } from "./cpu/results.ts";
import { startWasmEngine } from "./cpu/wasm-engine.ts";

const HELP = `Compares the speed on the CPU of stock llama.cpp WASM, of our kernels and of native llama.cpp.

  node scripts/bench/cpu.ts [options]

  --shapes LIST         of: ${Object.keys(SHAPES).join(", ")} (default 0.5B)
  --quantizations LIST  of: ${QUANTIZATIONS.join(", ")} (default all)
  --threads LIST        numbers of threads (default 1)
  --parts LIST          of: rates, streams, first (default all): prefill and decode; four streams against one;
                        the first prefill after loading against the second
  --without LIST        engines to leave out, of: ${ENGINES.join(", ")}
  --runs N              alternating runs of each engine (default 5); stock makes one
  --prompt N            tokens of the prompt (default 256)
  --tokens N            tokens generated behind it (default 32)
  --depth N             tokens of context before the prompt of the rates (default 0); all three together at most 65536
  --batch N             most tokens of prompt in one step (default 128); Daybreak takes fewer where a step would last more
                        than two seconds
  --flash-attention     use flash attention, in all engines
  --cache-type TYPE     of keys and values, in all engines: f16 (default), or q8_0, which needs flash attention
  --native-for NAME     let native llama.cpp run as on such a processor, of those it has builds for: haswell has AVX2 and no
                        more, alderlake VNNI besides (default: what it chooses)
  --clock CLOCK         wall (default), or processor: on Linux, time that the engine was running, for a machine that
                        other programs use as well
  --results FILE        keep the measurements there and add to those that it holds
  --print               measure nothing, print the results of that file
  --cache DIR           where models and native llama.cpp are kept (default ${BENCH_CACHE})

Models have random weights in real shapes and real mixtures of formats, and are made when they are first needed
(0.3 to 3.5 GB each). Native llama.cpp is the prebuilt one of the npm package node-llama-cpp; it is installed into the
cache and is not a dependency of the project. Each engine is a process of its own, and engines take turns, run by run.
Figures are medians with the smallest and largest in brackets. The default takes about ten minutes.`;

/** The stock engine is so slow that it gets less to do; reading the context is not part of its time. */
const STOCK_WORKLOAD: Workload = { promptTokens: 32, tokens: 8 };
const STREAMS = 4;
const STREAMS_WORKLOAD: Workload = { promptTokens: 64, tokens: 48 };
/** The first prefill is one of a short chat, in steps as the daemon would choose them. */
const FIRST_WORKLOAD: Workload = { promptTokens: 256, tokens: 2 };
const PARTS = ["rates", "streams", "first"] as const;

const { values } = parseArgs({
  options: {
    shapes: { type: "string", default: "0.5B" },
    quantizations: { type: "string", default: QUANTIZATIONS.join(",") },
    threads: { type: "string", default: "1" },
    parts: { type: "string", default: PARTS.join(",") },
    without: { type: "string", default: "" },
    runs: { type: "string", default: "5" },
    prompt: { type: "string", default: "256" },
    tokens: { type: "string", default: "32" },
    depth: { type: "string", default: "0" },
    batch: { type: "string", default: "128" },
    clock: { type: "string", default: "wall" },
    "flash-attention": { type: "boolean", default: false },
    "cache-type": { type: "string", default: "f16" },
    "native-for": { type: "string" },
    results: { type: "string" },
    print: { type: "boolean", default: false },
    cache: { type: "string", default: BENCH_CACHE },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await main();

async function main(): Promise<void> {
  const results = new Results(values.results);
  if (!values.print) await measureAll(results);
  console.log(renderResults(results));
}

async function measureAll(results: Results): Promise<void> {
  const shapes = chosenOf("shapes", SHAPE_NAMES);
  const quantizations = chosenOf("quantizations", QUANTIZATIONS);
  const parts = chosenOf("parts", PARTS);
  const engines = ENGINES.filter((engine) => !chosenOf("without", ENGINES).includes(engine));
  mkdirSync(values.cache, { recursive: true });
  if (engines.includes("native")) await installNative(nativeFolder(), values["native-for"]);
  for (const threads of values.threads.split(",").map(Number)) {
    for (const shape of shapes) {
      for (const quantization of quantizations) {
        const file = ensureBenchModel(values.cache, shape, quantization);
        const bench = { results, engines, file, threads, shape, quantization };
        if (parts.includes("rates")) await measureRates(bench);
        if (parts.includes("streams")) await measureStreams(bench);
        if (parts.includes("first")) await measureFirst(bench);
      }
    }
  }
}

/** The values of a list option. */
function chosenOf<Name extends string>(
  option: "shapes" | "quantizations" | "parts" | "without",
  known: readonly Name[],
): Name[] {
  return values[option]
    .split(",")
    .filter(Boolean)
    .map((asked) => chosen(option, asked, known));
}

interface Bench {
  readonly results: Results;
  readonly engines: readonly EngineName[];
  readonly file: string;
  readonly threads: number;
  readonly shape: ShapeName;
  readonly quantization: Quantization;
}

async function measureRates(bench: Bench): Promise<void> {
  const workload = {
    depth: Number(values.depth),
    promptTokens: Number(values.prompt),
    tokens: Number(values.tokens),
  };
  const engines = await startAll(bench, 1, workload);
  // The first run is for compilers and caches, and does not count.
  for (let run = 0; run <= Number(values.runs); run++) {
    for (const [name, engine] of engines) {
      if (name === "stock" && run !== 1) continue;
      const work = name === "stock" ? STOCK_WORKLOAD : workload;
      const rates = await engine.measure(work, run);
      if (run > 0) record(bench, name, engine, rates);
    }
  }
  await closeAll(engines);
}

async function measureStreams(bench: Bench): Promise<void> {
  const engines = await startAll(bench, STREAMS, STREAMS_WORKLOAD);
  engines.delete("stock");
  for (let run = 0; run <= Number(values.runs); run++) {
    for (const [name, engine] of engines) {
      const oneStream = await engine.measureStreams(1, STREAMS_WORKLOAD, run);
      const fourStreams = await engine.measureStreams(STREAMS, STREAMS_WORKLOAD, run);
      if (run > 0) record(bench, name, engine, { oneStream, fourStreams });
    }
  }
  await closeAll(engines);
}

async function measureFirst(bench: Bench): Promise<void> {
  const engines = bench.engines.filter((name) => name !== "stock");
  for (let run = 0; run < Number(values.runs); run++) {
    for (const name of engines) {
      const engine = await start(bench, name, 1, FIRST_WORKLOAD);
      const { prefill: firstPrefill } = await engine.measure(FIRST_WORKLOAD, 0);
      const { prefill: secondPrefill } = await engine.measure(FIRST_WORKLOAD, 1);
      record(bench, name, engine, { firstPrefill, secondPrefill });
      await engine.close();
    }
  }
}

async function startAll(
  bench: Bench,
  slots: number,
  workload: Workload,
): Promise<Map<EngineName, BenchEngine>> {
  const engines = new Map<EngineName, BenchEngine>();
  for (const name of bench.engines) {
    if (name === "stock" && slots > 1) continue;
    engines.set(name, await start(bench, name, slots, workload));
  }
  return engines;
}

async function closeAll(engines: ReadonlyMap<EngineName, BenchEngine>): Promise<void> {
  for (const engine of engines.values()) await engine.close();
}

function start(
  { file, threads }: Bench,
  name: EngineName,
  slots: number,
  { depth = 0, promptTokens, tokens }: Workload,
): Promise<BenchEngine> {
  const settings: BenchSettings = {
    file,
    threads,
    slots,
    batchSize: Number(values.batch),
    contextSize: slots * Math.ceil((depth + promptTokens + tokens + 1) / 256) * 256,
    flashAttention: values["flash-attention"],
    cacheType: chosen("cache-type", values["cache-type"], CACHE_TYPES),
    clock: chosen("clock", values.clock, CLOCKS),
  };
  if (name === "native") return startNativeEngine(nativeFolder(), settings);
  return startWasmEngine(name === "stock" ? "stock" : "auto", values.cache, settings);
}

function nativeFolder(): string {
  return path.join(values.cache, ["native", values["native-for"]].filter(Boolean).join("-"));
}

function record(
  { results, shape, quantization, threads }: Bench,
  engine: EngineName,
  { version }: BenchEngine,
  figures: Parameters<Results["add"]>[1],
): void {
  const { promptTokens, tokens } =
    engine === "stock"
      ? STOCK_WORKLOAD
      : { promptTokens: Number(values.prompt), tokens: Number(values.tokens) };
  const attention = values["flash-attention"] ? "with" : "without";
  const behind = values.depth === "0" ? "" : ` behind ${values.depth} of context`;
  const native = values["native-for"] ? `, native as for ${values["native-for"]}` : "";
  const workload = `${promptTokens} tokens of prompt${behind} in steps of ${values.batch}, ${tokens} generated, ${attention} flash attention, ${values["cache-type"]} cache, ${values.clock} time${native}`;
  const key: MeasurementKey = { shape, quantization, threads, engine, version, workload };
  results.add(key, figures);
  const text = Object.entries(figures).map(([figure, value]) => `${figure} ${value.toFixed(1)}`);
  console.error(`${shape} ${quantization}, ${threads} threads, ${engine}: ${text.join(", ")}`);
}
