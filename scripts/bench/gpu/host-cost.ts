import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import type { PreparedEngine } from "../../../src/engine/engine-image.ts";
import type { EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";

/** The only adapter of Dawn's backend that executes nothing. */
const NULL_ADAPTER = "Null backend";

/** Counted operations: calls into Dawn, programs and submissions among them, and calls of llama.cpp for any of them. */
export const COUNTS = ["calls", "programs", "submissions", "imports"] as const;

/** Cost of a step: milliseconds of processor time of the engine's thread, and counted operations. */
export type StepCost = Readonly<{ ms: number } & Record<(typeof COUNTS)[number], number>>;

export interface HostCost {
  readonly decode: StepCost;
  readonly prefill: StepCost;
}

/** Task of the process that measures. */
export interface HostCostTask {
  readonly engine: Pick<PreparedEngine, "wasmPath" | "heapLimitBytes">;
  readonly spec: EngineSpec;
  readonly tokens: number;
  readonly promptTokens: number;
  /** How often the prompt is read. */
  readonly repeats: number;
  /** Counting slows what is timed. */
  readonly counts: boolean;
}

const PROCESS = path.join(import.meta.dirname, "host-cost-process.ts");
const TIMEOUT_MS = 600_000;

const run = promisify(execFile);

/** Measures the host's cost of a GPU: loads the model onto Dawn's null backend in a separate process. */
export async function measureHostCost(task: HostCostTask): Promise<HostCost> {
  const { stdout } = await run(process.execPath, [PROCESS, JSON.stringify(task)], { timeout: TIMEOUT_MS });
  const cost: HostCost = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  return cost;
}

/** A model with all its layers on the null backend, with steps as on a GPU. */
export function nullSpec(
  file: string,
  contextSize: number,
  { batchSize, replay }: { readonly batchSize: number; readonly replay: boolean },
): EngineSpec {
  return {
    modelFiles: [file],
    adapters: [],
    purpose: "generate",
    contextSize,
    sharedContext: true,
    gpuLayers: -1,
    // The backend is chosen by the process that measures.
    gpu: { backend: "webgpu", name: NULL_ADAPTER, layers: 1, batchSize, replay },
    slots: 1,
    threads: 1,
    batchSize,
    flashAttention: "auto",
    contextShift: false,
  };
}
