import type { Engine, StartEngine } from "../engine.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import { gpuBatchSize } from "./gpu-batch-size.ts";
import type { GpuFinder } from "./gpu-finder.ts";

/** So many losses within {@link LOSS_WINDOW_MS}, and the model is loaded on the CPU. */
const MOST_LOSSES = 2;

/** A loss that lies further back was a driver's hiccup, a suspended laptop, an update. */
const LOSS_WINDOW_MS = 600_000;

export interface GpuGuardOptions {
  readonly start: StartEngine;
  readonly finder: GpuFinder;
  /** Prompt tokens for one step when the configuration says; 0: by the device. */
  readonly batchSize: number;
  /** An engine on the GPU has ended by itself. */
  readonly onLoss: (model: string, reason: string) => void;
  /** A model that was to run on the GPU is loaded on the CPU. */
  readonly onFallback: (model: string, reason: string) => void;
  /** Milliseconds since any origin. */
  readonly now?: () => number;
}

/**
 * Starts engines so that a GPU that fails costs speed and not the service: a model that cannot be loaded on it, or
 * has been lost on it again and again, is loaded on the CPU. Where a GPU is required, the errors stay errors.
 */
export function guardGpu({
  start,
  finder,
  batchSize,
  onLoss,
  onFallback,
  now = () => performance.now(),
}: GpuGuardOptions): StartEngine {
  const losses = new Map<string, number[]>();
  const isRequired = finder.settings.mode === "require";

  const recentLosses = (model: string): number[] =>
    (losses.get(model) ?? []).filter((time) => time > now() - LOSS_WINDOW_MS);

  const watch = async (engine: Engine, model: string): Promise<void> => {
    const exit = await engine.exited;
    if (exit.expected) return;
    losses.set(model, [...recentLosses(model), now()]);
    onLoss(model, exit.reason);
  };

  return async (spec, options = {}) => {
    const { adapter } = finder;
    if (!spec.gpu || spec.gpuLayers === 0) return await start(spec, options);
    const model = options.alias ?? spec.modelFiles.join(", ");
    const count = recentLosses(model).length;
    if (count >= MOST_LOSSES && !isRequired) {
      onFallback(model, `the GPU was lost ${count} times in ${LOSS_WINDOW_MS / 60_000} minutes`);
      return await start(onCpu(spec), options);
    }
    const step =
      batchSize === 0 && adapter && spec.purpose === "generate"
        ? gpuBatchSize(adapter, spec.contextSize, spec.slots)
        : spec.batchSize;
    try {
      const engine = await start({ ...spec, batchSize: step }, options);
      void watch(engine, model);
      return engine;
    } catch (error) {
      if (isRequired || options.signal?.aborted || !mayBeOfTheGpu(error)) throw error;
      onFallback(model, ServiceError.from(error).message);
      return await start(onCpu(spec), options);
    }
  };
}

function onCpu({ gpu: _gpu, ...spec }: EngineSpec): EngineSpec {
  return { ...spec, gpuLayers: 0 };
}

/** Errors of the file are the same on every device. */
function mayBeOfTheGpu(error: unknown): boolean {
  const { code } = ServiceError.from(error);
  return ["model_load_failed", "insufficient_memory", "engine_crashed", "deadline_exceeded"].includes(code);
}
