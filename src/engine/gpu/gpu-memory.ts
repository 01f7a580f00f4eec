import { contextTokens } from "../protocol/engine-spec.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { GpuAdapter } from "./gpu-report.ts";

/** The figures of a GGUF header that tell how much of a GPU a model takes. */
export interface GpuModel {
  readonly parameters: number;
  readonly blockCount: number;
  readonly vocabSize: number;
  readonly embeddingLength: number;
  /** Bytes of all files. */
  readonly fileSize: number;
  /** Bytes of KV cache for one token at f16. */
  readonly kvBytesPerToken: number;
  /** Bytes of weights by where they are used; an output of 0 means that the embedding is used for it, too. */
  readonly weightBytes: {
    readonly blocks: number;
    readonly largestInBlocks: number;
    readonly embedding: number;
    readonly output: number;
  };
}

/** Bytes that the parts of a model take on a GPU. */
interface GpuNeeds {
  /** One block, with its part of the KV cache. */
  readonly block: number;
  /** The output layer, which llama.cpp moves first. */
  readonly output: number;
  /** Intermediate results, whatever the number of layers. */
  readonly work: number;
}

/** Vectors of the embedding's length that a step holds at once: residual, queries, keys, values, feed-forward. */
const VECTORS_IN_A_STEP = 12;

/** Compiled programs, buffers to read back and the driver's own; what a small model was seen to take, rounded up. */
const DEVICE_BASE_BYTES = 64 * 1024 ** 2;

const FLOAT_BYTES = 4;

/** The rest is for the desktop and other programs; a GPU that is full swaps, or fails. */
const USABLE_SHARE = 0.9;

/**
 * Bytes of a GPU that all models together may use; Infinity where nobody knows how much it has.
 * @param configured bytes as the configuration has them; 0: by the adapter
 */
export function usableMemory(adapter: Pick<GpuAdapter, "memory">, configured: number): number {
  if (configured > 0) return configured;
  return adapter.memory === undefined ? Number.POSITIVE_INFINITY : Math.floor(adapter.memory * USABLE_SHARE);
}

/** How much of a GPU a model takes with this context and steps of so many tokens. */
export function gpuNeeds(
  model: GpuModel,
  spec: Pick<EngineSpec, "contextSize" | "slots" | "sharedContext">,
  batchSize: number,
): GpuNeeds {
  const { blockCount, kvBytesPerToken, vocabSize, embeddingLength } = model;
  const inBlocks = model.weightBytes.blocks + kvBytesPerToken * contextTokens(spec);
  return {
    block: Math.ceil(inBlocks / Math.max(1, blockCount)),
    output: outputBytes(model),
    work: DEVICE_BASE_BYTES + batchSize * (vocabSize + VECTORS_IN_A_STEP * embeddingLength) * FLOAT_BYTES,
  };
}

/** Most layers, the output layer included, that do not take more than `memory` bytes. */
export function layersThatFit({ block, output, work }: GpuNeeds, blockCount: number, memory: number): number {
  const left = memory - work - output;
  if (left < 0) return 0;
  return 1 + Math.min(blockCount, block === 0 ? blockCount : Math.floor(left / block));
}

/** Bytes of the tensor that makes logits; one that the embedding shares is on the GPU a second time. */
export function outputBytes({ weightBytes }: Pick<GpuModel, "weightBytes">): number {
  return weightBytes.output > 0 ? weightBytes.output : weightBytes.embedding;
}

/** Bytes that the layers of a model take on the GPU where they have been placed. */
export function bytesOnGpu(
  model: GpuModel,
  spec: Pick<EngineSpec, "gpuLayers" | "gpu" | "contextSize" | "slots" | "sharedContext">,
  besides: number,
): number {
  if (!spec.gpu || spec.gpuLayers === 0) return 0;
  const { block, output, work } = gpuNeeds(model, spec, spec.gpu.batchSize);
  return work + besides + output + block * blocksOnGpu(model, spec.gpuLayers);
}

/** What stays in the engine's own memory: bytes of the model's files, and the part of its KV cache, 0 to 1. */
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

/** The output layer counts as one, and goes first. */
function blocksOnGpu({ blockCount }: GpuModel, gpuLayers: number): number {
  return gpuLayers < 0 ? blockCount : Math.min(gpuLayers - 1, blockCount);
}
