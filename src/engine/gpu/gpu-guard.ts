import type { Engine, StartEngine } from "../engine.ts";
import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { GpuFinder } from "./gpu-finder.ts";

/** So many failures within {@link FAILURE_WINDOW_MS}, and the model is loaded on the CPU. */
const MOST_FAILURES = 2;

/**
 * A failure that lies further back was a driver's hiccup, a suspended laptop, an update: the next load tries the GPU
 * again.
 */
const FAILURE_WINDOW_MS = 600_000;

/** A cancel waits for one step, and so do the tokens of the other slots: one over the first time is cut to the second. */
const LONGEST_STEP_MS = 2000;
const BEARABLE_STEP_MS = 1000;

/** Out-of-memory messages of drivers, Dawn and llama.cpp. */
const OUT_OF_MEMORY =
  /out[ _]?of[ _]?(device[ _]|host[ _])?memory|(failed|unable) to allocate|alloc\w* failed/i;

/** The last is that of a request by which programs are compiled. */
const MAY_BE_OF_THE_GPU: ReadonlySet<string> = new Set<ErrorCode>([
  "model_load_failed",
  "insufficient_memory",
  "engine_crashed",
  "deadline_exceeded",
  "inference_failed",
]);

/** Reduced request to a GPU; -1 means all layers. */
type Reduction = Pick<EngineSpec, "gpuLayers" | "sharedContext">;

interface GpuGuardOptions {
  readonly start: StartEngine;
  readonly finder: Pick<GpuFinder, "settings">;
  /** An engine on the GPU exited unexpectedly. */
  readonly onLoss: (model: string, reason: string) => void;
  /** The GPU's memory does not hold what it was to take, and this is tried next. */
  readonly onReduction: (model: string, next: Reduction, reason: string) => void;
  /** Steps take so long that the model is loaded again with fewer tokens in each. */
  readonly onShorterStep: (model: string, batchSize: number, stepMs: number) => void;
  /** Steps are as long as the user wants them. */
  readonly isStepFixed: boolean;
  /** A model that was to run on the GPU is loaded on the CPU. */
  readonly onFallback: (model: string, reason: string) => void;
  /** Milliseconds since any origin. */
  readonly now?: () => number;
}

/**
 * Starts engines so that a GPU that fails costs speed and not the service: where its memory is full, a model is loaded
 * with one context for all slots, then with fewer layers there; one that cannot be loaded on it, or has been lost on
 * it again and again, is loaded on the CPU. Where a GPU is required, the errors stay errors. One that is slow gets
 * short steps.
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
  /** Tokens in a step of models whose steps were too long. */
  const shorterSteps = new Map<string, number>();
  const isRequired = finder.settings.mode === "require";

  const recent = (model: string): number[] =>
    (failures.get(model) ?? []).filter((time) => time > now() - FAILURE_WINDOW_MS);
  const note = (model: string): void => {
    failures.set(model, [...recent(model), now()]);
  };

  const watch = async (engine: Engine, model: string): Promise<void> => {
    const exit = await engine.exited;
    if (exit.expected) return;
    note(model);
    onLoss(model, exit.reason);
  };

  return async (spec, options = {}) => {
    const { gpu } = spec;
    if (!gpu || spec.gpuLayers === 0) return await start(spec, options);
    const model = options.alias ?? spec.modelFiles.join(", ");
    const startOnCpu = async (reason: string): Promise<Engine> => {
      onFallback(model, reason);
      const { gpu: _gpu, ...onCpu } = { ...spec, gpuLayers: 0 };
      await options.makeRoom?.(onCpu);
      return await start(onCpu, options);
    };
    const count = recent(model).length;
    if (count >= MOST_FAILURES && !isRequired) {
      return await startOnCpu(`the GPU failed ${count} times in ${FAILURE_WINDOW_MS / 60_000} minutes`);
    }
    let asked: Reduction = spec;
    for (;;) {
      const { gpuLayers, sharedContext } = asked;
      const batchSize = Math.min(gpu.batchSize, shorterSteps.get(model) ?? gpu.batchSize);
      try {
        const engine = await start({ ...spec, gpuLayers, sharedContext, batchSize }, options);
        const { stepMs = 0 } = engine.info;
        const shorter = Math.max(spec.slots + 1, Math.floor((batchSize * BEARABLE_STEP_MS) / stepMs));
        if (stepMs > LONGEST_STEP_MS && shorter < batchSize && !isStepFixed) {
          onShorterStep(model, shorter, stepMs);
          shorterSteps.set(model, shorter);
          await engine.close();
          continue;
        }
        void watch(engine, model);
        return engine;
      } catch (error) {
        if (options.signal?.aborted || !mayBeOfTheGpu(error)) throw error;
        const { message } = ServiceError.from(error);
        const next = OUT_OF_MEMORY.test(message) ? reduced(asked, gpu.layers) : undefined;
        const keepsLayers = next?.gpuLayers === asked.gpuLayers;
        if (next && (keepsLayers || !isRequired)) {
          onReduction(model, next, message);
          await options.makeRoom?.({ ...spec, ...next });
          asked = next;
          continue;
        }
        if (isRequired) throw error;
        note(model);
        return await startOnCpu(message);
      }
    }
  };
}

/**
 * Less than what a GPU had no room for; undefined when nothing is left of it. A context of its own is worth less to a
 * slot than layers.
 */
function reduced({ gpuLayers, sharedContext }: Reduction, all: number): Reduction | undefined {
  if (!sharedContext) return { gpuLayers, sharedContext: true };
  const fewer = Math.floor((gpuLayers < 0 ? all : gpuLayers) / 2);
  return fewer > 0 ? { gpuLayers: fewer, sharedContext } : undefined;
}

/** Errors of the file are the same on every device. */
function mayBeOfTheGpu(error: unknown): boolean {
  const { code } = ServiceError.from(error);
  return MAY_BE_OF_THE_GPU.has(code);
}
