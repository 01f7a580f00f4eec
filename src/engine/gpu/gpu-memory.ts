import {
  contextTokens,
  type EngineSpec,
  kvBytesPerToken,
  type KvCacheTypes,
} from "../protocol/engine-spec.ts";
import { VECTORS_IN_A_STEP } from "../estimate-memory.ts";
import type { GpuAdapter } from "./gpu-report.ts";

/** Figures of a GGUF header that determine the GPU memory of a model. */
export interface GpuModel {
  readonly parameters: number;
  readonly blockCount: number;
  readonly vocabSize: number;
  readonly embeddingLength: number;
  /** Bytes of all files. */
  readonly fileSize: number;
  /** Bytes of KV cache per token at f16. */
  readonly kvBytesPerToken: number;
  /** Bytes of weights by use; an output of 0 means that the embedding is also used as output. */
  readonly weightBytes: {
    readonly blocks: number;
    readonly largestInBlocks: number;
    readonly embedding: number;
    readonly output: number;
  };
}

type ContextSpec = KvCacheTypes & Pick<EngineSpec, "contextSize" | "slots" | "sharedContext">;

/** Bytes of the parts of a model on a GPU. */
interface GpuNeeds {
  /** One block, with its part of the KV cache. */
  readonly block: number;
  /** The output layer, which llama.cpp offloads first. */
  readonly output: number;
  /** Intermediate results, independent of the number of layers. */
  readonly work: number;
}

/** Compiled programs, readback buffers and the driver's own memory. */
const DEVICE_BASE_BYTES = 64 * 1024 ** 2;

const FLOAT_BYTES = 4;

/** Share that models may use; the rest is for other programs, because a GPU with full memory swaps or fails. */
const USABLE_SHARE = 0.9;

/**
 * Bytes of GPU memory that all models together may use; Infinity when unknown.
 * @param configured bytes from the configuration; 0: depends on the adapter
 */
export function usableMemory(adapter: Pick<GpuAdapter, "memory">, configured: number): number {
  if (configured > 0) return configured;
  return adapter.memory === undefined ? Number.POSITIVE_INFINITY : Math.floor(adapter.memory * USABLE_SHARE);
}

/** GPU memory of a model with this context and step size. */
export function gpuNeeds(model: GpuModel, spec: ContextSpec, batchSize: number): GpuNeeds {
  const { blockCount, vocabSize, embeddingLength } = model;
  const cache = kvBytesPerToken(model.kvBytesPerToken, spec) * contextTokens(spec);
  const inBlocks = model.weightBytes.blocks + cache;
  return {
    block: Math.ceil(inBlocks / Math.max(1, blockCount)),
    output: outputBytes(model),
    work: DEVICE_BASE_BYTES + batchSize * (vocabSize + VECTORS_IN_A_STEP * embeddingLength) * FLOAT_BYTES,
  };
}

/** Number of layers, including the output layer, that fit into `memory` bytes. */
export function layersThatFit({ block, output, work }: GpuNeeds, blockCount: number, memory: number): number {
  const left = memory - work - output;
  if (left < 0) return 0;
  return 1 + Math.min(blockCount, block === 0 ? blockCount : Math.floor(left / block));
}

/** Bytes of the output tensor; if it is shared with the embedding, the GPU gets a second copy. */
export function outputBytes({ weightBytes }: GpuModel): number {
  return weightBytes.output > 0 ? weightBytes.output : weightBytes.embedding;
}

/** Bytes of GPU memory of a model with this number of layers on the GPU. */
export function bytesOnGpu(
  model: GpuModel,
  spec: ContextSpec & Pick<EngineSpec, "gpuLayers" | "gpu">,
  extraBytes: number,
): number {
  if (!spec.gpu || spec.gpuLayers === 0) return 0;
  const { block, output, work } = gpuNeeds(model, spec, spec.gpu.batchSize);
  return work + extraBytes + output + block * blocksOnGpu(model, spec.gpuLayers);
}

/** Part of a model in main memory: bytes of its files, and the share of its KV cache, 0 to 1. */
export function partOnCpu(
  model: GpuModel,
  { gpuLayers, gpu }: Pick<EngineSpec, "gpuLayers" | "gpu">,
): { readonly fileBytes: number; readonly kvShare: number } {
  const { fileSize, blockCount, weightBytes } = model;
  if (!gpu || gpuLayers === 0) return { fileBytes: fileSize, kvShare: 1 };
  const share = blockCount === 0 ? 0 : blocksOnGpu(model, gpuLayers) / blockCount;
  return {
    fileBytes: Math.max(0, fileSize - weightBytes.blocks * share - weightBytes.output),
    kvShare: 1 - share,
  };
}

/** Number of blocks on the GPU. The output layer counts as one of the layers and is offloaded first. */
function blocksOnGpu({ blockCount }: GpuModel, gpuLayers: number): number {
  return gpuLayers < 0 ? blockCount : Math.min(gpuLayers - 1, blockCount);
}
