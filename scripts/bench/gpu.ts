#!/usr/bin/env node
import { existsSync, mkdirSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { type AdapterChoice, chooseAdapter, title } from "../../src/engine/gpu/offload-to-gpu.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import {
  ensureBenchModel,
  QUANTIZATIONS,
  type Quantization,
  type ShapeName,
  SHAPES,
} from "./cpu/bench-models.ts";
import { compareHostCosts, formatHostCosts } from "./gpu/compare-host-costs.ts";
import { createEngineBench } from "./gpu/measure-engine.ts";
import { installNative, isNativeInstalled, measureNative } from "./gpu/measure-native.ts";
import { formatRates, type Rates, type Workload } from "./gpu/rates.ts";
import { type BenchModelName, gigabytes, memoryForModels } from "./gpu/memory-for-models.ts";

const HELP = `Compares the speed of models on the CPU, on this machine's GPU through Dawn, and in native llama.cpp.

  node scripts/bench/gpu.ts [options] [MODEL.gguf...]

  --shapes LIST         without files: models to make, of: ${Object.keys(SHAPES).join(", ")} (default 0.5B,3B,8B)
  --quantizations LIST  of: ${QUANTIZATIONS.join(", ")} (default Q4_K_M,Q8_0)
  --prompt N            tokens of the prompt (default 512)
  --tokens N            tokens that are generated (default 64)
  --runs N              runs of each; the fastest counts (default 3)
  --adapter NAME        part of the name of the GPU; a software adapter has to be named
  --layers N            layers on the GPU, the output layer included (default -1: all)
  --threads N           threads on the CPU (default: half of the processors)
  --skip LIST           what not to measure, of: cpu, dawn, native
  --profile             also say where the time of a token goes on the GPU: shaders, submissions, other calls into Dawn,
                        waits, read-back, llama.cpp and JavaScript
  --warm-up             also time the first two requests after loading onto the GPU, with the warm-up and without
  --host                only what a step costs the host, on Dawn's null backend, which executes nothing and needs no GPU:
                        processor time, calls and submissions, for small models of 14, 28 and 56 blocks
  --starts              also time starts onto the GPU: programs not kept, kept in a new folder, and found there
  --cache DIR           where models and native llama.cpp are kept (default ${defaultCache()})
  --json                print the figures as JSON

Models without a name of a file have random weights in real shapes, and are made when they are first needed (0.3 to
8 GB each; the default six have 19 GB, and the largest takes 9.3 GB of memory). What is needed of disk and memory is
said before anything is made. Native llama.cpp is that of the npm package node-llama-cpp, with CUDA, Metal or Vulkan as
it was built by its authors; it is installed into the cache, which takes npm, the network and 1 GB, and is not a dependency
of the project. Figures are tokens per second.

Native llama.cpp passes over software adapters, unless GGML_VK_VISIBLE_DEVICES says which to take. To compare both on the
same one: GGML_VK_VISIBLE_DEVICES=0 node scripts/bench/gpu.ts --adapter llvmpipe --shapes tiny

A file of over 5 GB, on the CPU and with some of its layers on a software adapter:
node scripts/bench/gpu.ts --adapter llvmpipe --shapes 9B --quantizations Q4_K_M --layers 3 --prompt 4 --tokens 2 \\
  --runs 1 --skip native`;

/** Backends of node-llama-cpp's builds on each platform. */
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
    quantizations: { type: "string", default: "Q4_K_M,Q8_0" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "64" },
    runs: { type: "string", default: "3" },
    adapter: { type: "string" },
    layers: { type: "string", default: "-1" },
    threads: { type: "string", default: String(Math.max(1, Math.floor(os.availableParallelism() / 2))) },
    skip: { type: "string", default: "" },
    profile: { type: "boolean", default: false },
    "warm-up": { type: "boolean", default: false },
    starts: { type: "boolean", default: false },
    host: { type: "boolean", default: false },
    cache: { type: "string", default: defaultCache() },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else if (values.host) await measureHost();
else await main();

async function measureHost(): Promise<void> {
  const costs = await compareHostCosts(values.cache, (blocks) => say(`${blocks} blocks: measured`));
  console.log(values.json ? JSON.stringify(costs, undefined, 2) : formatHostCosts(costs));
}

async function main(): Promise<void> {
  const workload: Workload = {
    layers: values.layers === "-1" ? -1 : wholeNumber("layers", values.layers),
    promptTokens: wholeNumber("prompt", values.prompt),
    tokens: wholeNumber("tokens", values.tokens),
    runs: wholeNumber("runs", values.runs),
    threads: wholeNumber("threads", values.threads),
  };
  const skipped = new Set(listOf("skip", values.skip, PARTS));
  const models = chooseModels();
  mkdirSync(values.cache, { recursive: true });
  checkMemory(models, skipped.has("native"));
  const report = skipped.has("dawn") ? undefined : await probeGpu();
  const choice = report && chooseAdapter(report, values.adapter);
  if (!skipped.has("native")) {
    const problem = await installNative(values.cache);
    if (problem !== undefined) fail(problem);
  }
  const all: Rates[] = [];
  for (const model of models) {
    for await (const rates of measure(fileOf(model), workload, skipped, choice)) {
      all.push(rates);
      say(`${rates.model}, ${rates.engine}: ${rates.problem ?? "measured"}`);
      for (const more of [rates.profile, rates.warmUp, rates.starts]) if (more !== undefined) say(more);
    }
  }
  console.log(values.json ? JSON.stringify(all, undefined, 2) : formatRates(all));
}

/** A file that was given, or a model to make when its turn comes. */
type Model = string | BenchModelName;

function chooseModels(): readonly Model[] {
  if (positionals.length > 0) {
    for (const file of positionals) if (!existsSync(file)) fail(`there is no file ${file}`);
    return positionals.map((file) => path.resolve(file));
  }
  const shapes = listOf("shapes", values.shapes, SHAPE_NAMES);
  const quantizations = listOf<Quantization>("quantizations", values.quantizations, QUANTIZATIONS);
  return shapes.flatMap((shape) => quantizations.map((quantization) => ({ shape, quantization })));
}

/** Says what the models take of the machine; ends where it has not that much. */
function checkMemory(models: readonly Model[], withoutNative: boolean): void {
  const made = models.filter((model) => typeof model !== "string");
  const installs = !withoutNative && !isNativeInstalled(values.cache);
  const { diskBytes, memoryBytes, problem } = memoryForModels(values.cache, made, installs);
  if (made.length === 0 && !installs) return;
  const needs = `This takes ${gigabytes(diskBytes)} more of ${values.cache}, and ${gigabytes(memoryBytes)} of memory`;
  if (problem !== undefined) fail(`${needs}; ${problem}`);
  say(`${needs}.`);
}

function fileOf(model: Model): string {
  if (typeof model === "string") return model;
  const { shape, quantization } = model;
  say(`${shape}, ${quantization}: made, unless it is there`);
  return ensureBenchModel(values.cache, shape, quantization);
}

async function* measure(
  file: string,
  workload: Workload,
  skipped: ReadonlySet<(typeof PARTS)[number]>,
  choice: AdapterChoice | undefined,
): AsyncGenerator<Rates> {
  const model = path.basename(file);
  const bench = await createEngineBench(values.cache);
  if (!skipped.has("cpu")) yield { model, engine: "CPU", ...(await bench.measure(file, workload)) };
  if (choice && "problem" in choice) yield { model, engine: "Dawn", problem: choice.problem };
  if (choice && "adapter" in choice) {
    const { adapter } = choice;
    const speed = await bench.measure(file, workload, adapter);
    const more: { profile?: string; warmUp?: string; starts?: string } = {};
    if (values.profile && !speed.problem) more.profile = await bench.profile(file, workload, adapter);
    if (values["warm-up"] && !speed.problem) more.warmUp = await bench.warmUp(file, workload, adapter);
    if (values.starts && !speed.problem) more.starts = await bench.starts(file, workload, adapter);
    yield { model, engine: `Dawn, ${title(adapter)}`, ...speed, ...more };
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
