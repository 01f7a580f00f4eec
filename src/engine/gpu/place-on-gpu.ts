import { ServiceError } from "../../errors/service-error.ts";
import { contextTokens, type EngineSpec } from "../protocol/engine-spec.ts";
import { kvBytesPerToken } from "../protocol/kv-cache.ts";
import { title } from "./choose-adapter.ts";
import { gpuBatchSize } from "./gpu-batch-size.ts";
import { type GpuModel, gpuNeeds, layersThatFit, outputBytes, usableMemory } from "./gpu-memory.ts";
import type { GpuAdapter } from "./gpu-report.ts";

export interface GpuPreferences {
  /** Layers that a user asked for: 0 for none, -1 for all; absent: according to the configuration. */
  readonly layers?: number | undefined;
  /** Bytes of GPU memory that all models together may use; 0: depends on the GPU. */
  readonly memory: number;
  /** Bytes of it that other models use. */
  readonly taken: number;
  /** Prompt tokens per step; 0: depends on the GPU. */
  readonly batchSize: number;
  /** False: what the GPU was told to compute is not repeated. */
  readonly replay?: boolean;
  /** Bytes of the projector and of adapters, which are placed with the layers. */
  readonly extraBytes: number;
}

/** auto: use a GPU if there is one; off: never use one; require: do not load models without one. */
export type GpuMode = "auto" | "off" | "require";

/** What has been found out about the GPU, and how it is to be used. */
export interface FoundGpu {
  readonly settings: { readonly mode: GpuMode };
  /** Resolves when the search is done; never rejects. */
  readonly ready: Promise<void>;
  /** The adapter that models use. */
  readonly adapter: GpuAdapter | undefined;
  /** Why there is none, for people; undefined when there is one. */
  readonly problem: string | undefined;
}

export interface GpuPlacement {
  readonly spec: EngineSpec;
  /** For the user, when the model is placed differently than requested. */
  readonly warning?: string | undefined;
}

const MIB = 1024 * 1024;

/**
 * Decides how many layers of a model go to the GPU.
 * @throws ServiceError gpu_unavailable or insufficient_memory when a GPU is required
 */
export async function placeOnGpu(
  finder: FoundGpu,
  { gpu: _none, ...spec }: EngineSpec,
  model: GpuModel,
  preferences: GpuPreferences,
): Promise<GpuPlacement> {
  const onCpu: EngineSpec = { ...spec, gpuLayers: 0 };
  const { mode } = finder.settings;
  if (preferences.layers === 0 || (preferences.layers === undefined && mode === "off"))
    return { spec: onCpu };
  await finder.ready;
  const { adapter, problem } = finder;
  if (!adapter) {
    if (mode === "require") {
      throw new ServiceError("gpu_unavailable", `The configuration requires a GPU. ${problem}`);
    }
    if (preferences.layers === undefined) return { spec: onCpu };
    return {
      spec: onCpu,
      warning: `The model stays on the CPU, although GPU layers were requested. ${problem}`,
    };
  }
  const step = gpuBatchSize(adapter, model, spec);
  const obstacle = step === undefined ? tooSlow(adapter) : tooLargeToBind(adapter, model, spec);
  if (step === undefined || obstacle !== undefined) {
    if (mode === "require") throw new ServiceError("gpu_unavailable", `${obstacle}`);
    return { spec: onCpu, warning: `The model stays on the CPU. ${obstacle}` };
  }
  const batchSize = preferences.batchSize > 0 && spec.purpose === "generate" ? preferences.batchSize : step;
  const all = model.blockCount + 1;
  const asked =
    preferences.layers === undefined || preferences.layers < 0 ? all : Math.min(preferences.layers, all);
  const { fitting, why } = fit(adapter, model, { ...spec, batchSize }, preferences);
  if (asked > fitting && mode === "require") throw new ServiceError("insufficient_memory", why);
  const layers = Math.min(asked, fitting);
  if (layers === 0) return { spec: onCpu, warning: why };
  return {
    spec: {
      ...spec,
      // llama.cpp may count layers differently, so "all" is passed on as such.
      gpuLayers: layers === all ? -1 : layers,
      gpu: {
        backend: adapter.backend,
        name: adapter.name,
        layers: all,
        batchSize,
        ...(preferences.replay === false && { replay: false }),
      },
    },
    warning: asked > fitting ? why : outputStays(adapter, model),
  };
}

/** How many layers fit into the memory of the adapter, and the message for a model that has more. */
function fit(
  adapter: GpuAdapter,
  model: GpuModel,
  spec: EngineSpec,
  { memory: configured, taken, extraBytes }: GpuPreferences,
): { readonly fitting: number; readonly why: string } {
  const all = model.blockCount + 1;
  const { work, ...needs } = gpuNeeds(model, spec, spec.batchSize);
  const memory = usableMemory(adapter, configured);
  const fitting = layersThatFit({ ...needs, work: work + extraBytes }, model.blockCount, memory - taken);
  const whose = configured > 0 ? " (gpu.memory)" : "";
  const room = `the ${mib(memory)} MiB of ${title(adapter)} that models may use${whose}`;
  const why =
    taken > 0
      ? `Only ${fitting} of its ${all} layers fit into ${room}, since other models use ${mib(taken)} MiB; ` +
        "unload one, or use a smaller context or a smaller quantization."
      : `Only ${fitting} of its ${all} layers fit into ${room}; use a smaller context or a smaller quantization.`;
  return { fitting, why };
}

function tooSlow(adapter: GpuAdapter): string {
  return `The model is too large for ${title(adapter)}, which computes on the CPU: each step would take more than 10 s.`;
}

/**
 * A shader binds whole tensors. Weights that are too large to bind are computed on the CPU, in every layer; when the KV
 * cache is too large, llama.cpp aborts.
 */
function tooLargeToBind(
  { limits, ...adapter }: GpuAdapter,
  { weightBytes, kvBytesPerToken: atHalf, blockCount }: GpuModel,
  spec: EngineSpec,
): string | undefined {
  const most = limits.maxStorageBufferBindingSize;
  if (most === 0) return undefined;
  const limit = `A shader on ${title(adapter)} can access at most ${mib(most)} MiB at once`;
  if (weightBytes.largestInBlocks > most) {
    return `${limit}, but each layer has a tensor of ${mib(weightBytes.largestInBlocks)} MiB; use a smaller quantization.`;
  }
  // Keys and values are separate tensors.
  const bytes = [spec.cacheTypeK, spec.cacheTypeV].map(
    (type) => kvBytesPerToken(atHalf, { cacheTypeK: type, cacheTypeV: type }) / 2,
  );
  const cache = (Math.max(...bytes) / Math.max(1, blockCount)) * contextTokens(spec);
  return cache > most
    ? `${limit}, but the KV cache of each layer has ${mib(cache)} MiB; use a smaller context.`
    : undefined;
}

/** The same for the output layer, which costs less because there is only one. */
function outputStays({ limits, ...adapter }: GpuAdapter, model: GpuModel): string | undefined {
  const most = limits.maxStorageBufferBindingSize;
  if (most === 0 || outputBytes(model) <= most) return undefined;
  return `The output layer of ${mib(outputBytes(model))} MiB stays on the CPU, which makes each token slower: a shader on ${title(adapter)} can access at most ${mib(most)} MiB at once.`;
}

function mib(bytes: number): number {
  return Math.floor(bytes / MIB);
}
