import { ServiceError } from "../../errors/service-error.ts";
import { type GgufSummary, NO_SETTINGS } from "../model.ts";
import type { ModelFit, ModelSizes } from "../models.ts";
import type { LoadPlanner } from "./load-planner.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/** Estimates if a model of these sizes could be loaded on this machine while no other model is loaded. */
export async function estimateFit(
  sizes: ModelSizes,
  planner: LoadPlanner,
  memory: MemoryBudget,
): Promise<ModelFit> {
  const model = assumedModel(sizes);
  let neededBytes = sizes.fileBytes;
  try {
    const { spec, bytes, gpuBytes } = await planner.estimate(model);
    neededBytes = bytes;
    memory.check("The model", bytes);
    const { contextSize, gpuLayers, gpu } = spec;
    const layers = gpu && gpuLayers < 0 ? gpu.layers : gpuLayers;
    return {
      fits: true,
      neededBytes,
      contextSize,
      ...(gpu && { gpu: { layers, allLayers: gpu.layers, bytes: gpuBytes } }),
    };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { contextSize } = planner.engines.expectedContext({ gguf: model, settings: NO_SETTINGS });
    return { fits: false, neededBytes, contextSize, reason: error.message };
  }
}

/** Bits per weight that scales add to the number in a quantization's name. */
const SCALE_BITS = 0.8;
const DEFAULT_BITS = 5;

/** Typical ratios of transformers: weights per block and squared width, and width per number of blocks. */
const WEIGHTS_PER_SQUARE = 12;
const WIDTH_PER_BLOCK = 128;

/** Typical vocabulary of current models; older ones are smaller. */
const VOCABULARY = 128_000;
/** Key-value heads per attention head with grouped-query attention, which nearly all models use. */
const KV_HEADS_SHARE = 1 / 4;
const F16_BYTES = 2;
/** Maximum share of the embedding, which is a large part of a small model. */
const MAX_EMBEDDING_SHARE = 1 / 2;
/** Share of the largest matrix in a block, that of the feed-forward network. */
const LARGEST_TENSOR_SHARE = 1 / 3;

/**
 * Derives a plausible header from a model's sizes, by the typical proportions of transformers, to estimate memory
 * before the model is downloaded.
 */
export function assumedModel({
  fileBytes,
  parameters: knownParameters,
  trainedContext,
  quantization = "",
}: ModelSizes): GgufSummary {
  const parameters = knownParameters ?? Math.round((fileBytes * 8) / bitsOf(quantization));
  const blockCount = Math.max(
    1,
    Math.round(Math.cbrt(parameters / (WEIGHTS_PER_SQUARE * WIDTH_PER_BLOCK ** 2))),
  );
  const embeddingLength = Math.max(1, Math.round(Math.sqrt(parameters / (WEIGHTS_PER_SQUARE * blockCount))));
  const bytesPerWeight = fileBytes / Math.max(1, parameters);
  const embedding = Math.min(fileBytes * MAX_EMBEDDING_SHARE, VOCABULARY * embeddingLength * bytesPerWeight);
  const blocks = fileBytes - embedding;
  return {
    architecture: "assumed",
    name: undefined,
    parameters,
    vocabSize: VOCABULARY,
    contextLength: trainedContext ?? 0,
    embeddingLength,
    headCount: 0,
    blockCount,
    quantization,
    fileSize: fileBytes,
    chatTemplate: undefined,
    infill: undefined,
    toolCallTokens: [],
    // Keys and values.
    kvBytesPerToken: Math.round(2 * blockCount * embeddingLength * KV_HEADS_SHARE * F16_BYTES),
    weightBytes: {
      blocks,
      largestInBlocks: (blocks / blockCount) * LARGEST_TENSOR_SHARE,
      embedding,
      output: 0,
    },
    purpose: "generate",
    auxiliary: undefined,
    media: { image: false, audio: false },
  };
}

/** "Q4_K_M" has about 4.8 bits for each weight, "F16" exactly 16. */
function bitsOf(quantization: string): number {
  const bits = Number(/\d+/.exec(quantization)?.[0] ?? 0);
  if (bits === 0) return DEFAULT_BITS;
  return bits >= 16 ? bits : bits + SCALE_BITS;
}
