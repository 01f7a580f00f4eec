import { ServiceError } from "../errors/service-error.ts";
import { contextTokens } from "./protocol/engine-spec.ts";
import type { EngineSpec } from "./protocol/engine-spec.ts";

const MIB = 1024 * 1024;

/** What the size of a step's intermediate results depends on. */
type StepModel = Pick<MemoryQuestion, "vocabSize" | "embeddingLength" | "headCount">;

/** What loading needs to know; plain numbers, so that any layer can ask before anything is loaded. */
export interface MemoryQuestion {
  /** Bytes of the model's files, projector and adapters included: weights are held once, as they are. */
  readonly fileBytes: number;
  /** Bytes of KV cache for one token at f16. */
  readonly kvBytesPerToken: number;
  readonly vocabSize: number;
  readonly embeddingLength: number;
  /** Attention heads of the layer that has most; 0: not known. */
  readonly headCount: number;
  readonly spec: Pick<
    EngineSpec,
    | "contextSize"
    | "slots"
    | "sharedContext"
    | "batchSize"
    | "threads"
    | "cacheTypeK"
    | "cacheTypeV"
    | "projectorFile"
  >;
}

export interface MemoryEstimate {
  /** Inside the WASM heap: must stay below the engine's limit. */
  readonly heapBytes: number;
  /**
   * What the heap may grow to: the estimate, and room for what a header does not tell. An engine that wants more has
   * been made to want it, by a chat template say.
   */
  readonly heapLimitBytes: number;
  /** Of the whole process. */
  readonly totalBytes: number;
}

/** Bytes of one number in each type of cache; the quantized ones hold 32 in a block. */
const CACHE_TYPE_BYTES = {
  f32: 4,
  f16: 2,
  q8_0: 34 / 32,
  q5_1: 24 / 32,
  q5_0: 22 / 32,
  q4_1: 20 / 32,
  q4_0: 18 / 32,
} as const;

/** Width of an attention head in most models; it tells how many heads an embedding has where the header does not. */
const COMMON_HEAD_WIDTH = 64;

/** Vectors of the embedding's length that a step holds at once: residual, queries, keys, values, feed-forward. */
const VECTORS_IN_A_STEP = 12;

/** llama.cpp's tables, vocabulary, chat templates and file cache inside the heap. */
const HEAP_BASE_BYTES = 32 * MIB;

/**
 * Room beyond the estimate: requests with their prompts and grammars, which is freed when they are answered,
 * and llama.cpp's plan of a step, which is hardly ever touched. Not reserved, because few engines need it: the part of
 * the machine's memory that models do not get has room for those.
 */
const REQUESTS_BYTES = 320 * MIB;

/**
 * The same for a projector: its plan, images while they are decoded, and the attention scores of an image's patches, whose
 * size is not in the header.
 */
const IMAGES_BYTES = 2048 * MIB;

/** Margin of error: architectures differ in what they keep besides weights and KV cache. */
const ESTIMATE_ERROR = 1 / 8;

/** Node, the worker and the compiled WASM, with one thread. */
const PROCESS_BASE_BYTES = 232 * MIB;

/** A thread's own copy of the scripts and its stack. */
const THREAD_BYTES = 24 * MIB;

/** How much memory an engine will need at its peak, as far as can be told from the header of its model. */
export function estimateMemory(question: MemoryQuestion): MemoryEstimate {
  const { fileBytes, kvBytesPerToken, spec } = question;
  const half = kvBytesPerToken / 2 / CACHE_TYPE_BYTES.f16; // numbers of K, and as many of V
  const kvNumberBytes =
    CACHE_TYPE_BYTES[spec.cacheTypeK ?? "f16"] + CACHE_TYPE_BYTES[spec.cacheTypeV ?? "f16"];
  const kvBytes = half * kvNumberBytes * contextTokens(spec);
  const heapBytes = Math.ceil(fileBytes + kvBytes + stepBytes(question) + HEAP_BASE_BYTES);
  const threads = spec.threads > 1 ? spec.threads : 0; // one thread is the worker itself
  const roomBytes = REQUESTS_BYTES + (spec.projectorFile === undefined ? 0 : IMAGES_BYTES);
  const heapLimitBytes = Math.ceil(heapBytes * (1 + ESTIMATE_ERROR) + plannedBytes(question) + roomBytes);
  return { heapBytes, heapLimitBytes, totalBytes: heapBytes + PROCESS_BASE_BYTES + threads * THREAD_BYTES };
}

/** @throws ServiceError insufficient_memory when a model cannot fit into an engine, on whatever machine */
export function checkHeapLimit({ heapBytes }: MemoryEstimate, limitBytes: number): void {
  if (heapBytes <= limitBytes) return;
  throw new ServiceError(
    "insufficient_memory",
    `The model needs about ${mib(heapBytes)} MiB of an engine's ${mib(limitBytes)} MiB; ` +
      "a smaller context or a smaller quantization may fit.",
  );
}

function mib(bytes: number): number {
  return Math.ceil(bytes / MIB);
}

/** Bytes of intermediate results of one step. */
function stepBytes(question: MemoryQuestion): number {
  const { contextSize, batchSize } = question.spec;
  return batchSize * bytesPerStepToken(question, contextSize);
}

/**
 * Bytes of intermediate results that each token of a step has, without flash attention: scores of every head for every token of a
 * context, its logits, and vectors.
 */
export function bytesPerStepToken(model: StepModel, contextSize: number): number {
  const { vocabSize, embeddingLength } = model;
  const numbers = heads(model) * contextSize + vocabSize + VECTORS_IN_A_STEP * embeddingLength;
  return numbers * CACHE_TYPE_BYTES.f32;
}

/**
 * llama.cpp's room for the scores once more as f16, as which it would multiply them with values of that type; our kernels
 * do not, so it is taken from the heap and never touched.
 */
function plannedBytes(question: MemoryQuestion): number {
  return scores(question) * CACHE_TYPE_BYTES.f16;
}

/** How many scores a step has at once. */
function scores(question: MemoryQuestion): number {
  const { contextSize, batchSize } = question.spec;
  return heads(question) * contextSize * batchSize;
}

function heads({ embeddingLength, headCount }: Pick<StepModel, "embeddingLength" | "headCount">): number {
  return headCount || Math.max(1, embeddingLength / COMMON_HEAD_WIDTH);
}
