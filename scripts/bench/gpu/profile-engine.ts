import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setEnvironmentData } from "node:worker_threads";
import { EngineCore } from "../../../src/engine/core/engine-core.ts";
import { deferredSteps, warmUpBeforeRequests } from "../../../src/engine/core/warm-up.ts";
import { deviceFlags } from "../../../src/engine/gpu/dawn.ts";
import { findDawn } from "../../../src/engine/gpu/probe-gpu.ts";
import type { GpuAdapter } from "../../../src/engine/gpu/gpu-report.ts";
import { openEngineFiles } from "../../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../../src/engine/host/node-platform.ts";
import type { EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";
import type { PreparedEngine } from "../../../src/engine/engine-image.ts";
import { greedyRequest } from "./greedy-request.ts";
import { generated } from "../../../test/support/generated.ts";

/** Figures of profile-dawn.mjs, in its order. */
const FIGURES = [
  "calls",
  "callMs",
  "submissions",
  "submitMs",
  "waits",
  "waitMs",
  "reads",
  "readMs",
  "shaderMs",
] as const;
const TIME_SHADERS = FIGURES.length;

/** A software adapter compiles shaders for long. */
const LONGEST_WAIT_MS = 600_000;

/** Average costs of one generated token. */
type TokenCosts = Readonly<Record<(typeof FIGURES)[number] | "totalMs", number>>;

/**
 * Generates in this process with a Dawn that counts, first for the times of calls and waits, then for those of
 * shaders, whose measurement slows the rest.
 */
export async function profileEngine(
  { wasmPath, heapLimitBytes }: Pick<PreparedEngine, "wasmPath" | "heapLimitBytes">,
  adapter: GpuAdapter,
  spec: EngineSpec,
  tokens: number,
): Promise<TokenCosts> {
  const memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT * (FIGURES.length + 1));
  const figures = new Float64Array(memory);
  setEnvironmentData("daybreak-profile", { realDawn: findDawn(), memory });
  const dawnPath = path.join(path.dirname(fileURLToPath(import.meta.url)), "profile-dawn.mjs");
  const platform = createNodePlatform(pathToFileURL(wasmPath).href, () => {}, {
    gpu: { dawnPath, flags: deviceFlags(adapter), maxWaitMs: LONGEST_WAIT_MS },
    heapLimitBytes,
  });
  const engine = await EngineCore.load(platform, spec, openEngineFiles(spec));
  try {
    await warmUpBeforeRequests(engine, spec);
    const { signal } = new AbortController();
    for (const step of deferredSteps(engine, spec)) await step({ signal });
    const { totalMs, ...costs } = await costsOfToken(engine, figures, tokens);
    figures[TIME_SHADERS] = 1;
    const { shaderMs } = await costsOfToken(engine, figures, tokens);
    return { ...costs, totalMs, shaderMs };
  } finally {
    engine.close();
  }
}

async function costsOfToken(engine: EngineCore, figures: Float64Array, tokens: number): Promise<TokenCosts> {
  const events = generated(engine, greedyRequest(" a a a a", tokens), new AbortController().signal);
  let before: Float64Array | undefined;
  let begin = 0;
  for await (const { type } of events) {
    // The first token comes with the prompt.
    if (before || type !== "text-delta") continue;
    before = Float64Array.from(figures);
    begin = performance.now();
  }
  const steps = tokens - 1;
  const cost = (index: number): number => ((figures[index] ?? 0) - (before?.[index] ?? 0)) / steps;
  const totalMs = (performance.now() - begin) / steps;
  const costs = FIGURES.map((_, index) => cost(index));
  const [calls = 0, callMs = 0, submissions = 0, submitMs = 0, waits = 0, waitMs = 0] = costs;
  const [reads = 0, readMs = 0, shaderMs = 0] = costs.slice(FIGURES.indexOf("reads"));
  return { totalMs, calls, callMs, submissions, submitMs, waits, waitMs, reads, readMs, shaderMs };
}

/** One sentence for each share of a token's time. */
export function describeCosts(costs: TokenCosts): string {
  const { totalMs, calls, callMs, submissions, submitMs, waits, waitMs, reads, readMs, shaderMs } = costs;
  const share = (ms: number): string => `${ms.toFixed(2)} ms (${((100 * ms) / totalMs).toFixed(0)} %)`;
  const shaders = shaderMs > 0 ? share(shaderMs) : "not known, the GPU has no clock for them";
  const rest = Math.max(0, totalMs - callMs - submitMs - waitMs - readMs);
  return [
    `a token takes ${totalMs.toFixed(2)} ms:`,
    `  ${share(submitMs)} in ${submissions.toFixed(1)} submissions`,
    `  ${share(callMs)} in ${calls.toFixed(0)} other calls into Dawn`,
    `  ${share(waitMs)} waiting for the GPU, ${waits.toFixed(1)} times`,
    `  ${share(readMs)} reading back, ${reads.toFixed(1)} times`,
    `  ${share(rest)} in llama.cpp and JavaScript`,
    `  shaders, on the GPU meanwhile: ${shaders}`,
  ].join("\n");
}
