#!/usr/bin/env node
import { mkdirSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { chooseAdapter, title } from "../../src/engine/gpu/choose-adapter.ts";
import type { GpuAdapter } from "../../src/engine/gpu/gpu-report.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import {
  ensureBenchModel,
  QUANTISATIONS,
  type Quantisation,
  type ShapeName,
  SHAPES,
} from "./cpu/bench-models.ts";
import { createEngineBench } from "./gpu/measure-engine.ts";
import { installNative, measureNative } from "./gpu/measure-native.ts";
import { formatRates, type Rates, type Workload } from "./gpu/rates.ts";

const HELP = `Compares the speed of models on the CPU, on this machine's GPU through Dawn, and in native llama.cpp.

  node scripts/bench/gpu.ts [options] [MODEL.gguf...]

  --shapes LIST         without files: models to make, of: ${Object.keys(SHAPES).join(", ")} (default 0.5B,3B,8B)
  --quantisations LIST  of: ${QUANTISATIONS.join(", ")} (default Q4_K_M,Q8_0)
  --prompt N            tokens of the prompt (default 512)
  --tokens N            tokens that are generated (default 64)
  --runs N              runs of each; the fastest counts (default 3)
  --adapter NAME        part of the name of the GPU; a software adapter has to be named
  --threads N           threads on the CPU (default: half of the processors)
  --skip LIST           what not to measure, of: cpu, dawn, native
  --profile             also say where the time of a token goes on the GPU: shaders, calls into Dawn, waits
  --cache DIR           where models and native llama.cpp are kept (default ${defaultCache()})
  --json                print the figures as JSON

Models without a name of a file have random weights in real shapes, and are made when they are first needed (0.3 to
8.5 GB each). Native llama.cpp is that of the npm package node-llama-cpp, with CUDA, Metal or Vulkan as it was built by
its authors; it is installed into the cache and is no dependency of the project. Figures are tokens per second.

Native llama.cpp passes over software adapters, unless GGML_VK_VISIBLE_DEVICES says which to take. To compare both on the
same one: GGML_VK_VISIBLE_DEVICES=0 node scripts/bench/gpu.ts --adapter llvmpipe --shapes tiny --skip cpu`;

/** What node-llama-cpp is built for on each platform. */
const NATIVE_BACKENDS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ["cpu", "cuda", "vulkan"],
  win32: ["cpu", "cuda", "vulkan"],
  darwin: ["cpu", "metal"],
};

const SHAPE_NAMES = Object.keys(SHAPES).filter((name): name is ShapeName => name in SHAPES);
const PARTS = ["cpu", "dawn", "native"] as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shapes: { type: "string", default: "0.5B,3B,8B" },
    quantisations: { type: "string", default: "Q4_K_M,Q8_0" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "64" },
    runs: { type: "string", default: "3" },
    adapter: { type: "string" },
    threads: { type: "string", default: String(Math.max(1, Math.floor(os.availableParallelism() / 2))) },
    skip: { type: "string", default: "" },
    profile: { type: "boolean", default: false },
    cache: { type: "string", default: defaultCache() },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else await main();

async function main(): Promise<void> {
  const workload: Workload = {
    promptTokens: wholeNumber("prompt", values.prompt),
    tokens: wholeNumber("tokens", values.tokens),
    runs: wholeNumber("runs", values.runs),
    threads: wholeNumber("threads", values.threads),
  };
  const skipped = new Set(listOf("skip", values.skip, PARTS));
  const models = chooseModels();
  const report = skipped.has("dawn") ? undefined : await probeGpu();
  const choice =
    report && chooseAdapter(report, { adapter: values.adapter, powerPreference: "high-performance" });
  if (choice && "problem" in choice) say(`Nothing is measured through Dawn. ${choice.problem}`);
  const adapter = choice && "adapter" in choice ? choice.adapter : undefined;
  mkdirSync(values.cache, { recursive: true });
  if (!skipped.has("native")) {
    const problem = await installNative(values.cache);
    if (problem !== undefined) {
      say(`Nothing is measured natively. ${problem}`);
      skipped.add("native");
    }
  }
  const all: Rates[] = [];
  for (const model of models) {
    const file = model();
    for await (const rates of measure(file, workload, skipped, adapter)) {
      all.push(rates);
      say(`${rates.model}, ${rates.engine}: ${rates.problem ?? "measured"}`);
      if (rates.profile !== undefined) say(rates.profile);
    }
  }
  console.log(values.json ? JSON.stringify(all, undefined, 2) : formatRates(all));
}

/** The files that were given, or those to make, each when its turn comes. */
function chooseModels(): (() => string)[] {
  if (positionals.length > 0) return positionals.map((file) => () => path.resolve(file));
  const shapes = listOf("shapes", values.shapes, SHAPE_NAMES);
  const quantisations = listOf<Quantisation>("quantisations", values.quantisations, QUANTISATIONS);
  return shapes.flatMap((shape) =>
    quantisations.map((quantisation) => () => {
      say(`${shape}, ${quantisation}: made, unless it is there`);
      return ensureBenchModel(values.cache, shape, quantisation);
    }),
  );
}

async function* measure(
  file: string,
  workload: Workload,
  skipped: ReadonlySet<(typeof PARTS)[number]>,
  adapter: GpuAdapter | undefined,
): AsyncGenerator<Rates> {
  const model = path.basename(file);
  const bench = await createEngineBench(values.cache);
  if (!skipped.has("cpu")) yield { model, engine: "CPU", ...(await bench.measure(file, workload)) };
  if (adapter) {
    const speed = await bench.measure(file, workload, adapter);
    const profile =
      values.profile && !speed.problem ? await bench.profile(file, workload, adapter) : undefined;
    yield { model, engine: `Dawn, ${title(adapter)}`, ...speed, ...(profile !== undefined && { profile }) };
  }
  if (skipped.has("native")) return;
  for (const gpu of NATIVE_BACKENDS[process.platform] ?? []) {
    yield { model, engine: `native, ${gpu}`, ...(await measureNative(values.cache, file, gpu, workload)) };
  }
}

function defaultCache(): string {
  return path.join(os.tmpdir(), "daybreak-bench-gpu");
}

function wholeNumber(option: string, text: string): number {
  const number = Number(text);
  const isFine = Number.isSafeInteger(number) && number > 0;
  return isFine ? number : fail(`--${option} takes a number of 1 or more, not "${text}"`);
}

function listOf<Name extends string>(option: string, text: string, known: readonly Name[]): Name[] {
  return text
    .split(",")
    .filter((part) => part !== "")
    .map((part) => {
      const name = known.find((each) => each === part);
      return name ?? fail(`--${option} takes a list of ${known.join(", ")}, not "${part}"`);
    });
}

function fail(problem: string): never {
  console.error(`${problem}; see --help`);
  process.exit(2);
}

/** Progress, beside the results. */
function say(line: string): void {
  if (!values.json) console.error(line);
}
