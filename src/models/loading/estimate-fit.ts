import { ServiceError } from "../../errors/service-error.ts";
import { type GgufSummary, NO_SETTINGS } from "../model.ts";
import type { ModelFit, ModelSizes } from "../models.ts";
import type { LoadPlanner } from "./load-planner.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/** Estimates whether a model of these sizes could be loaded on this machine if nothing else were. */
export async function estimateFit(
  sizes: ModelSizes,
  planner: Pick<LoadPlanner, "likelyContext" | "estimate">,
  memory: Pick<MemoryBudget, "check">,
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
    const { contextSize } = planner.likelyContext({ gguf: model, settings: NO_SETTINGS });
    return { fits: false, neededBytes, contextSize, reason: error.message };
  }
}

/** Bits of a weight, by the number in the name of a quantization; formats have scales beside the weights. */
const SCALE_BITS = 0.8;
const BITS_OF_UNKNOWN = 5;

/** Weights of a block of a transformer for each square of its width, and its width for each block, as in most models. */
const WEIGHTS_PER_SQUARE = 12;
const WIDTH_PER_BLOCK = 128;

/** Tokens of most vocabularies of today; older ones are smaller. */
const VOCABULARY = 128_000;
/** Share of the keys and values that models keep whose heads share them, which nearly all do. */
const SHARED_HEADS = 1 / 4;
const F16_BYTES = 2;
/** The embedding of a small model is a large part of it, but not all. */
const MAX_IN_EMBEDDING = 1 / 2;
/** The largest matrix of a block, between its width and the feed-forward's, is about a third of it. */
const LARGEST_OF_BLOCK = 1 / 3;

/**
 * What the header of a model would say that has such files, if it is built as most are: for estimates of memory before
 * it is downloaded.
 */
export function assumedModel({
  fileBytes,
  parameters: told,
  trainedContext,
  quantization = "",
}: ModelSizes): GgufSummary {
  const parameters = told ?? Math.round((fileBytes * 8) / bitsOf(quantization));
  const blockCount = Math.max(
    1,
    Math.round(Math.cbrt(parameters / (WEIGHTS_PER_SQUARE * WIDTH_PER_BLOCK ** 2))),
  );
  const embeddingLength = Math.max(1, Math.round(Math.sqrt(parameters / (WEIGHTS_PER_SQUARE * blockCount))));
  const bytesPerWeight = fileBytes / Math.max(1, parameters);
  const embedding = Math.min(fileBytes * MAX_IN_EMBEDDING, VOCABULARY * embeddingLength * bytesPerWeight);
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
    callTokens: [],
    // Keys and values.
    kvBytesPerToken: Math.round(2 * blockCount * embeddingLength * SHARED_HEADS * F16_BYTES),
    weightBytes: { blocks, largestInBlocks: (blocks / blockCount) * LARGEST_OF_BLOCK, embedding, output: 0 },
    purpose: "generate",
    auxiliary: undefined,
    media: { image: false, audio: false },
  };
}

/** "Q4_K_M" has about 4.8 bits for each weight, "F16" exactly 16. */
function bitsOf(quantization: string): number {
  const bits = Number(/\d+/.exec(quantization)?.[0] ?? 0);
  if (bits === 0) return BITS_OF_UNKNOWN;
  return bits >= 16 ? bits : bits + SCALE_BITS;
}
