import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { GpuAdapter } from "../../../src/engine/gpu/gpu-report.ts";
import { programCacheVariables } from "../../../src/engine/gpu/program-cache.ts";
import type { PreparedEngine } from "../../../src/engine/engine-image.ts";
import type { EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";

/** Tokens of a short prompt; the answer is just long enough to measure its rate. */
export const FIRST_PROMPT_TOKENS = 12;
export const FIRST_TOKENS = 16;

export interface RequestTimes {
  /** Milliseconds to the first token. */
  readonly firstTokenMs: number;
  /** Tokens per second after it. */
  readonly decode: number;
}

export interface FirstRequests {
  /** Milliseconds of loading, the warm-up included. */
  readonly loadMs: number;
  /** Processor time of it, which other programs of the machine change less. */
  readonly loadProcessorMs: number;
  /** Most bytes that the process had resident until then; on a software adapter, what is on the GPU is among them. */
  readonly peakBytes: number;
  readonly first: RequestTimes;
  readonly second: RequestTimes;
}

/** Task of the process that loads the model. */
export interface FirstRequestsTask {
  readonly engine: Pick<PreparedEngine, "wasmPath" | "heapLimitBytes">;
  readonly adapter: GpuAdapter;
  readonly spec: EngineSpec;
  readonly isWarm: boolean;
}

const PROCESS = path.join(import.meta.dirname, "first-requests-process.ts");
const TIMEOUT_MS = 1_800_000;

/** Mesa's and NVIDIA's drivers keep what they have compiled; a user's first start finds nothing there. */
const WITHOUT_DRIVER_CACHE = { MESA_SHADER_CACHE_DISABLE: "true", __GL_SHADER_DISK_CACHE: "0" };

const run = promisify(execFile);

/** Loads a model in a separate process and times the first two requests. */
async function timeFirstRequests(
  task: FirstRequestsTask,
  driverCache: Readonly<Record<string, string>> = WITHOUT_DRIVER_CACHE,
): Promise<FirstRequests> {
  const { stdout } = await run(process.execPath, [PROCESS, JSON.stringify(task)], {
    timeout: TIMEOUT_MS,
    env: { ...process.env, ...driverCache },
  });
  const times: FirstRequests = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  return times;
}

/** The first two requests with the warm-up and without, in words. */
export async function compareWarmUp(task: Omit<FirstRequestsTask, "isWarm">): Promise<string> {
  const cold = await timeFirstRequests({ ...task, isWarm: false });
  const warm = await timeFirstRequests({ ...task, isWarm: true });
  return [
    `${FIRST_PROMPT_TOKENS} tokens of prompt and ${FIRST_TOKENS} of answer after loading, where the driver has compiled nothing before:`,
    describe("without the warm-up", cold),
    describe("with it", warm),
  ].join("\n");
}

/** Two starts of a model whose driver keeps what it compiles in an empty folder of ours, and one without it, in words. */
export async function compareStarts(task: Omit<FirstRequestsTask, "isWarm">): Promise<string> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-programs-"));
  try {
    const kept = programCacheVariables(folder, {});
    const without = await timeFirstRequests({ ...task, isWarm: true });
    const first = await timeFirstRequests({ ...task, isWarm: true }, kept);
    const second = await timeFirstRequests({ ...task, isWarm: true }, kept);
    return [
      "starts of the model, warm-up included:",
      describe("programs are not kept", without),
      describe("first start that keeps them", first),
      describe("second", second),
    ].join("\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function describe(
  what: string,
  { loadMs, loadProcessorMs, peakBytes, first, second }: FirstRequests,
): string {
  const ratio = (first.firstTokenMs / second.firstTokenMs).toFixed(2);
  return `  ${what}: loaded in ${(loadMs / 1000).toFixed(1)} s (${(loadProcessorMs / 1000).toFixed(1)} s of processor time, at most ${Math.round(peakBytes / 1e6)} MB resident); first token after ${Math.round(first.firstTokenMs)} ms, then ${Math.round(second.firstTokenMs)} ms (${ratio} x); ${first.decode.toFixed(1)} tokens/s, then ${second.decode.toFixed(1)}`;
}
