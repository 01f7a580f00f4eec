import type { EngineSpec } from "../protocol/engine-spec.ts";

/** The figures of a GGUF header that tell how much of a GPU a model takes. */
export interface GpuModel {
  readonly blockCount: number;
  /** Bytes of all files. */
  readonly fileSize: number;
  /** Bytes of KV cache for one token at f16. */
  readonly kvBytesPerToken: number;
}

/**
 * Part of the weights and the cache that intermediate results and llama.cpp's own tables take in addition; the first
 * models seen took 5 to 10 percent.
 */
const WORKING_SHARE = 0.15;

/** Bytes that one layer takes on a GPU, its part of the KV cache included. The output layer counts as one. */
export function gpuBytesPerLayer(model: GpuModel, { contextSize }: Pick<EngineSpec, "contextSize">): number {
  const bytes = model.fileSize + model.kvBytesPerToken * contextSize;
  return Math.ceil((bytes * (1 + WORKING_SHARE)) / (model.blockCount + 1));
}

/** Part of a model that stays in the engine's own memory, 0 to 1. */
export function shareOnCpu(
  model: GpuModel,
  { gpuLayers, gpu }: Pick<EngineSpec, "gpuLayers" | "gpu">,
): number {
  if (!gpu || gpuLayers === 0) return 1;
  const all = model.blockCount + 1;
  const offloaded = gpuLayers < 0 ? all : Math.min(gpuLayers, all);
  return 1 - offloaded / all;
}
