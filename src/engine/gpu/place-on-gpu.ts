import { ServiceError } from "../../errors/service-error.ts";
import { contextTokens } from "../protocol/engine-spec.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import { title } from "./choose-adapter.ts";
import { gpuBatchSize } from "./gpu-batch-size.ts";
import type { GpuFinder } from "./gpu-finder.ts";
import { type GpuModel, gpuNeeds, layersThatFit, outputBytes, usableMemory } from "./gpu-memory.ts";
import type { GpuAdapter } from "./gpu-report.ts";

export interface GpuWishes {
  /** Layers as a user gave them, for this load or for this model: 0 is CPU, -1 is all; absent: by the configuration. */
  readonly layers?: number | undefined;
  /** Bytes of the GPU that all models together may use; 0: by what the GPU has. */
  readonly memory: number;
  /** Bytes of it that other models have. */
  readonly taken: number;
  /** Prompt tokens for one step; 0: by the device. */
  readonly batchSize: number;
  /** Bytes of the projector and of adapters, which go where the layers are. */
  readonly besides: number;
}

export interface GpuPlacement {
  readonly spec: EngineSpec;
  /** What the user should know: the model is placed differently than was asked. */
  readonly warning?: string | undefined;
}

const MIB = 1024 * 1024;

/**
 * Decides how many layers of a model go to the GPU, before anything is loaded.
 * @throws ServiceError gpu_unavailable or insufficient_memory when a GPU is required
 */
export async function placeOnGpu(
  finder: GpuFinder,
  { gpu: _none, ...spec }: EngineSpec,
  model: GpuModel,
  wishes: GpuWishes,
): Promise<GpuPlacement> {
  const onCpu: EngineSpec = { ...spec, gpuLayers: 0 };
  const { mode } = finder.settings;
  if (wishes.layers === 0 || (wishes.layers === undefined && mode === "off")) return { spec: onCpu };
  await finder.ready;
  const { adapter, problem } = finder;
  if (!adapter) {
    if (mode === "require") {
      throw new ServiceError("gpu_unavailable", `The configuration requires a GPU. ${problem}`);
    }
    if (wishes.layers === undefined) return { spec: onCpu };
    return {
      spec: onCpu,
      warning: `The model stays on the CPU, though GPU layers were asked for. ${problem}`,
    };
  }
  const step = gpuBatchSize(adapter, model, spec);
  const obstacle = step === undefined ? tooSlow(adapter) : tooLargeToBind(adapter, model, spec);
  if (step === undefined || obstacle !== undefined) {
    if (mode === "require") throw new ServiceError("gpu_unavailable", `${obstacle}`);
    return { spec: onCpu, warning: `The model stays on the CPU. ${obstacle}` };
  }
  const batchSize = wishes.batchSize > 0 && spec.purpose === "generate" ? wishes.batchSize : step;
  const all = model.blockCount + 1;
  const asked = wishes.layers === undefined || wishes.layers < 0 ? all : Math.min(wishes.layers, all);
  const { fitting, why } = fit(adapter, model, { ...spec, batchSize }, wishes);
  if (asked > fitting && mode === "require") throw new ServiceError("insufficient_memory", why);
  const layers = Math.min(asked, fitting);
  if (layers === 0) return { spec: onCpu, warning: why };
  return {
    spec: {
      ...spec,
      // How llama.cpp counts layers is its own affair where it gets all of them.
      gpuLayers: layers === all ? -1 : layers,
      gpu: { backend: adapter.backend, name: adapter.name, layers: all, batchSize },
    },
    warning: asked > fitting ? why : outputStays(adapter, model),
  };
}

/** How many layers the memory of the adapter holds, and the sentence for a model that has more. */
function fit(
  adapter: GpuAdapter,
  model: GpuModel,
  spec: EngineSpec,
  { memory: configured, taken, besides }: GpuWishes,
): { readonly fitting: number; readonly why: string } {
  const all = model.blockCount + 1;
  const { work, ...needs } = gpuNeeds(model, spec, spec.batchSize);
  const memory = usableMemory(adapter, configured);
  const fitting = layersThatFit({ ...needs, work: work + besides }, model.blockCount, memory - taken);
  const whose = configured > 0 ? " (gpu.memory)" : "";
  const room = `the ${mib(memory)} MiB of ${title(adapter)} that models may use${whose}`;
  const why =
    taken > 0
      ? `Only ${fitting} of its ${all} layers fit into ${room} beside the other models, which have ${mib(taken)} MiB; ` +
        "unload one, or take a smaller context or a smaller quantization."
      : `Only ${fitting} of its ${all} layers fit into ${room}; a smaller context or a smaller quantization needs less.`;
  return { fitting, why };
}

function tooSlow(adapter: GpuAdapter): string {
  return `The model is too large for ${title(adapter)}, which computes on the CPU: each step would take over 10 s.`;
}

/**
 * A program sees one tensor at once. llama.cpp leaves weights that are too large to the CPU, at each layer again, and
 * aborts when it is the cache.
 */
function tooLargeToBind(
  { limits, ...adapter }: GpuAdapter,
  { weightBytes, kvBytesPerToken, blockCount }: GpuModel,
  spec: EngineSpec,
): string | undefined {
  const most = limits.maxStorageBufferBindingSize;
  if (most === 0) return undefined;
  const sees = `A program on ${title(adapter)} sees at most ${mib(most)} MiB at once`;
  if (weightBytes.largestInBlocks > most) {
    return `${sees}, and a tensor of each layer has ${mib(weightBytes.largestInBlocks)} MiB; a smaller quantization may do.`;
  }
  // Keys and values are a tensor each.
  const cache = ((kvBytesPerToken / Math.max(1, blockCount)) * contextTokens(spec)) / 2;
  return cache > most
    ? `${sees}, and the cache of each layer has ${mib(cache)} MiB; a smaller context will do.`
    : undefined;
}

/** The same for the output, which is there once. */
function outputStays({ limits, ...adapter }: GpuAdapter, model: GpuModel): string | undefined {
  const most = limits.maxStorageBufferBindingSize;
  if (most === 0 || outputBytes(model) <= most) return undefined;
  return `The output layer of ${mib(outputBytes(model))} MiB stays on the CPU, which makes each token slower: a program on ${title(adapter)} sees at most ${mib(most)} MiB at once.`;
}

function mib(bytes: number): number {
  return Math.floor(bytes / MIB);
}
