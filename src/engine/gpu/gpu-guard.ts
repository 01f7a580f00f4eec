import type { Engine, StartEngine } from "../engine.ts";
import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { FoundGpu } from "./offload-to-gpu.ts";

/** After this many failures within {@link FAILURE_WINDOW_MS}, the model is loaded on the CPU. */
const MAX_FAILURES = 2;

/** Failures older than this may have been a driver update or a suspended laptop, so the next load tries the GPU again. */
const FAILURE_WINDOW_MS = 600_000;

/** Cancellation and other slots wait for a step, so steps above the maximum are shortened to the target. */
const MAX_STEP_MS = 2000;
const TARGET_STEP_MS = 1000;

/** Out-of-memory messages of drivers, Dawn and llama.cpp. */
const OUT_OF_MEMORY =
  /out[ _]?of[ _]?(device[ _]|host[ _])?memory|(failed|unable) to allocate|alloc\w* failed/i;

/**
 * Error codes that a failing GPU may cause; the last one can come from a warm-up request. Others are the same on every
 * device, such as those of the model file.
 */
const POSSIBLE_GPU_FAILURES: ReadonlySet<string> = new Set<ErrorCode>([
  "model_load_failed",
  "insufficient_memory",
  "engine_crashed",
  "deadline_exceeded",
  "inference_failed",
]);

/** Part of a model on the GPU; -1 means all layers. */
type Placement = Pick<EngineSpec, "gpuLayers" | "sharedContext">;

interface GpuGuardOptions {
  readonly start: StartEngine;
  readonly finder: Pick<FoundGpu, "settings">;
  readonly onLoss: (model: string, reason: string) => void;
  /** Called when the GPU does not have enough memory, before `next` is tried. */
  readonly onReduction: (model: string, next: Placement, reason: string) => void;
  /** Called when steps take too long, before the model is reloaded with fewer tokens per step. */
  readonly onShorterStep: (model: string, batchSize: number, stepMs: number) => void;
  /** True if the user has set the step size, so that it is not changed. */
  readonly isStepFixed: boolean;
  /** Called when a model that should run on the GPU is loaded on the CPU. */
  readonly onFallback: (model: string, reason: string) => void;
  /** Milliseconds since any origin. */
  readonly now?: () => number;
}

/**
 * Starts engines so that a failing GPU costs speed but not availability. When the GPU's memory is full, the model gets
 * one context for all slots, then fewer layers on the GPU. When it cannot be loaded there, or its engine crashes
 * repeatedly, it is loaded on the CPU, unless a GPU is required. A slow GPU gets shorter steps.
 */
export function guardGpu({
  start,
  finder,
  onLoss,
  onReduction,
  onShorterStep,
  isStepFixed,
  onFallback,
  now = () => performance.now(),
}: GpuGuardOptions): StartEngine {
  const failures = new Map<string, number[]>();
  /** Tokens per step of models whose steps were too long. */
  const shorterSteps = new Map<string, number>();
  const isRequired = finder.settings.mode === "require";

  const recentFailures = (model: string): number[] =>
    (failures.get(model) ?? []).filter((time) => time > now() - FAILURE_WINDOW_MS);
  const recordFailure = (model: string): void => {
    failures.set(model, [...recentFailures(model), now()]);
  };

  const watch = async (engine: Engine, model: string): Promise<void> => {
    const exit = await engine.exited;
    if (exit.expected) return;
    recordFailure(model);
    onLoss(model, exit.reason);
  };

  return async (spec, options = {}) => {
    const { gpu } = spec;
    if (!gpu || spec.gpuLayers === 0) return await start(spec, options);
    const model = options.alias ?? spec.modelFiles.join(", ");
    const startOnCpu = async (reason: string): Promise<Engine> => {
      onFallback(model, reason);
      const { gpu: _gpu, ...onCpu } = { ...spec, gpuLayers: 0 };
      await options.reserveMemory?.(onCpu);
      return await start(onCpu, options);
    };
    const count = recentFailures(model).length;
    if (count >= MAX_FAILURES && !isRequired) {
      return await startOnCpu(`the GPU failed ${count} times in ${FAILURE_WINDOW_MS / 60_000} minutes`);
    }
    let placement: Placement = spec;
    for (;;) {
      const { gpuLayers, sharedContext } = placement;
      const batchSize = Math.min(gpu.batchSize, shorterSteps.get(model) ?? gpu.batchSize);
      try {
        const engine = await start({ ...spec, gpuLayers, sharedContext, batchSize }, options);
        const { stepMs = 0 } = engine.info;
        const shorter = Math.max(spec.slots + 1, Math.floor((batchSize * TARGET_STEP_MS) / stepMs));
        if (stepMs > MAX_STEP_MS && shorter < batchSize && !isStepFixed) {
          onShorterStep(model, shorter, stepMs);
          shorterSteps.set(model, shorter);
          await engine.close();
          continue;
        }
        void watch(engine, model);
        return engine;
      } catch (error) {
        const { code, message } = ServiceError.from(error);
        if (options.signal?.aborted || !POSSIBLE_GPU_FAILURES.has(code)) throw error;
        const next = OUT_OF_MEMORY.test(message) ? smallerPlacement(placement, gpu.layers) : undefined;
        const keepsLayers = next?.gpuLayers === placement.gpuLayers;
        if (next && (keepsLayers || !isRequired)) {
          onReduction(model, next, message);
          await options.reserveMemory?.({ ...spec, ...next });
          placement = next;
          continue;
        }
        if (isRequired) throw error;
        recordFailure(model);
        return await startOnCpu(message);
      }
    }
  };
}

/** Next smaller placement; undefined when there is none. Contexts are shared before layers are removed. */
function smallerPlacement({ gpuLayers, sharedContext }: Placement, all: number): Placement | undefined {
  if (!sharedContext) return { gpuLayers, sharedContext: true };
  const fewer = Math.floor((gpuLayers < 0 ? all : gpuLayers) / 2);
  return fewer > 0 ? { gpuLayers: fewer, sharedContext } : undefined;
}
