#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { chooseAdapter, title } from "../../src/engine/gpu/choose-adapter.ts";
import { probeGpu } from "../../src/engine/gpu/probe-gpu.ts";
import { createEngineBench } from "./gpu/measure-engine.ts";
import { installNative, measureNative } from "./gpu/measure-native.ts";
import { formatRates, type Rates, type Workload } from "./gpu/rates.ts";

const HELP = `Compares the speed of models on the CPU, on this machine's GPU through Dawn, and in native llama.cpp.

  node scripts/bench/gpu.ts [options] MODEL.gguf...

  --prompt N       tokens of the prompt (default 512)
  --tokens N       tokens that are generated (default 64)
  --runs N         runs of each; the fastest counts (default 3)
  --adapter NAME   part of the name of the GPU; a software adapter has to be named
  --threads N      threads on the CPU (default: half of the processors)
  --skip LIST      what not to measure, of: cpu, dawn, native
  --native DIR     a folder in which node-llama-cpp is installed; default: it is installed into a temporary one
  --json           print the figures as JSON

Native llama.cpp is that of the npm package node-llama-cpp, with CUDA, Metal or Vulkan as it was built by its authors;
it is no dependency of the project. Figures are tokens per second.`;

/** What node-llama-cpp is built for on each platform. */
const NATIVE_BACKENDS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ["cpu", "cuda", "vulkan"],
  win32: ["cpu", "cuda", "vulkan"],
  darwin: ["cpu", "metal"],
};

const { values, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "64" },
    runs: { type: "string", default: "3" },
    adapter: { type: "string" },
    threads: { type: "string", default: String(Math.max(1, Math.floor(os.availableParallelism() / 2))) },
    skip: { type: "string", default: "" },
    native: { type: "string" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help || files.length === 0) console.log(HELP);
else await main();

async function main(): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-bench-gpu-"));
  try {
    const all: Rates[] = [];
    for (const file of files) {
      for (const rates of await measure(path.resolve(file), folder)) {
        all.push(rates);
        if (!values.json) console.error(`${rates.model}, ${rates.engine}: ${rates.problem ?? "measured"}`);
      }
    }
    console.log(values.json ? JSON.stringify(all, undefined, 2) : formatRates(all));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(file: string, folder: string): Promise<Rates[]> {
  const skipped = new Set(values.skip.split(","));
  const model = path.basename(file);
  const workload: Workload = {
    promptTokens: Number(values.prompt),
    tokens: Number(values.tokens),
    runs: Number(values.runs),
    threads: Number(values.threads),
  };
  const measured: Rates[] = [];
  const bench = await createEngineBench(folder);
  if (!skipped.has("cpu")) measured.push({ model, engine: "CPU", ...(await bench(file, workload)) });
  if (!skipped.has("dawn")) {
    const choice = chooseAdapter(await probeGpu(), {
      adapter: values.adapter,
      powerPreference: "high-performance",
    });
    const engine = "adapter" in choice ? `Dawn, ${title(choice.adapter)}` : "Dawn";
    const result =
      "adapter" in choice ? await bench(file, workload, choice.adapter) : { problem: choice.problem };
    measured.push({ model, engine, ...result });
  }
  if (!skipped.has("native")) {
    const native = values.native ?? (await installNative(folder));
    for (const gpu of NATIVE_BACKENDS[process.platform] ?? []) {
      measured.push({
        model,
        engine: `native, ${gpu}`,
        ...(await measureNative(native, file, gpu, workload)),
      });
    }
  }
  return measured;
}
