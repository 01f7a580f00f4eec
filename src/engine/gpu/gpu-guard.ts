import type { Engine, StartEngine } from "../engine.ts";
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

/** What drivers, Dawn and llama.cpp say when there is no memory left. */
const OUT_OF_MEMORY =
  /out[ _]?of[ _]?(device[ _]|host[ _])?memory|(failed|unable) to allocate|alloc\w* failed/i;

export interface GpuGuardOptions {
  readonly start: StartEngine;
  readonly finder: Pick<GpuFinder, "settings">;
  /** An engine on the GPU has ended by itself. */
  readonly onLoss: (model: string, reason: string) => void;
  /** The GPU's memory does not hold the layers that it was to take, and so many are tried next. */
  readonly onReduction: (model: string, layers: number, reason: string) => void;
  /** A model that was to run on the GPU is loaded on the CPU. */
  readonly onFallback: (model: string, reason: string) => void;
  /** Milliseconds since any origin. */
  readonly now?: () => number;
}

/**
 * Starts engines so that a GPU that fails costs speed and not the service: where its memory is full, a model is loaded
 * with fewer layers there; one that cannot be loaded on it, or has been lost on it again and again, is loaded on the
 * CPU. Where a GPU is required, the errors stay errors.
 */
export function guardGpu({
  start,
  finder,
  onLoss,
  onReduction,
  onFallback,
  now = () => performance.now(),
}: GpuGuardOptions): StartEngine {
  const failures = new Map<string, number[]>();
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
    const count = recent(model).length;
    if (count >= MOST_FAILURES && !isRequired) {
      onFallback(model, `the GPU failed ${count} times in ${FAILURE_WINDOW_MS / 60_000} minutes`);
      return await start(onCpu(spec), options);
    }
    let layers = spec.gpuLayers;
    for (;;) {
      try {
        const engine = await start({ ...spec, gpuLayers: layers, batchSize: gpu.batchSize }, options);
        void watch(engine, model);
        return engine;
      } catch (error) {
        if (isRequired || options.signal?.aborted || !mayBeOfTheGpu(error)) throw error;
        const { message } = ServiceError.from(error);
        const fewer = OUT_OF_MEMORY.test(message) ? Math.floor((layers < 0 ? gpu.layers : layers) / 2) : 0;
        if (fewer > 0) {
          onReduction(model, fewer, message);
          layers = fewer;
          continue;
        }
        note(model);
        onFallback(model, message);
        return await start(onCpu(spec), options);
      }
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
