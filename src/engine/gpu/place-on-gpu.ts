import { ServiceError } from "../../errors/service-error.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import { title } from "./choose-adapter.ts";
import type { GpuFinder } from "./gpu-finder.ts";
import { gpuBytesPerLayer, type GpuModel } from "./gpu-memory.ts";

export interface GpuPlacement {
  readonly spec: EngineSpec;
  /** What the user should know: the model is placed otherwise than was asked. */
  readonly warning?: string | undefined;
}

/**
 * Decides how many layers of a model go to the GPU, before anything is loaded.
 * @param wished layers as a user gave them, for this load or for this model: 0 is CPU, -1 is all; undefined: the
 *   configuration decides
 * @param memory bytes of the GPU that one model may use, 0 when unknown
 * @throws ServiceError gpu_unavailable or insufficient_memory when a GPU is required
 */
export async function placeOnGpu(
  finder: GpuFinder,
  { gpu: _none, ...spec }: EngineSpec,
  model: GpuModel,
  wished: number | undefined,
  memory: number,
): Promise<GpuPlacement> {
  const onCpu: EngineSpec = { ...spec, gpuLayers: 0 };
  const { mode } = finder.settings;
  if (wished === 0 || (wished === undefined && mode === "off")) return { spec: onCpu };
  await finder.ready;
  const { adapter, problem } = finder;
  if (!adapter) {
    if (mode === "require") {
      throw new ServiceError("gpu_unavailable", `The configuration requires a GPU. ${problem}`);
    }
    if (wished === undefined) return { spec: onCpu };
    return {
      spec: onCpu,
      warning: `The model stays on the CPU, though GPU layers were asked for. ${problem}`,
    };
  }
  const { backend, name } = adapter;
  const place = (gpuLayers: number): EngineSpec => ({ ...spec, gpuLayers, gpu: { backend, name } });
  // llama.cpp counts the output layer as one more.
  const all = model.blockCount + 1;
  const asked = wished === undefined || wished < 0 ? all : Math.min(wished, all);
  const fitting = memory > 0 ? Math.floor(memory / gpuBytesPerLayer(model, spec)) : all;
  if (asked <= fitting) return { spec: place(asked === all ? -1 : asked) };
  const why = `Only ${fitting} of its ${all} layers fit into the ${Math.floor(memory / MIB)} MiB of ${title(adapter)} that a model may use (gpu.memory).`;
  if (mode === "require") throw new ServiceError("insufficient_memory", why);
  return { spec: fitting === 0 ? onCpu : place(fitting), warning: why };
}

const MIB = 1024 * 1024;
