import { ServiceError } from "../errors/service-error.ts";
import { AUDIO_THREADS } from "./core/worker-patches.ts";
import { CACHE_TYPE_BYTES, contextTokens, type EngineSpec, kvBytesPerToken } from "./protocol/engine-spec.ts";

const MIB = 1024 * 1024;

/** What the size of a step's intermediate results depends on. */
type StepModel = Pick<MemoryQuestion, "vocabSize" | "embeddingLength" | "headCount">;

/** What the memory of an engine depends on. */
export interface MemoryQuestion {
  /** Bytes of the model's files, including projector and adapters: weights are held once, unchanged. */
  readonly fileBytes: number;
  /** Bytes of KV cache per token at f16. */
  readonly kvBytesPerToken: number;
  readonly vocabSize: number;
  readonly embeddingLength: number;
  /** Most attention heads in any layer; 0: unknown. */
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
    | "hearsAudio"
    | "promptCacheBytes"
    | "draft"
  >;
}

export interface MemoryEstimate {
  /** Inside the WASM heap; must stay below the engine's limit. */
  readonly heapBytes: number;
  /**
   * Largest heap: the estimate plus room for what the header does not tell. An engine that needs more may be under
   * attack, for example by a chat template.
   */
  readonly heapLimitBytes: number;
  /** Whole process. */
  readonly totalBytes: number;
}

/** Width of an attention head in most models, for headers that do not state the number of heads. */
const COMMON_HEAD_WIDTH = 64;

/** Vectors of the embedding length that a step holds at once: residual, queries, keys, values, feed-forward. */
export const VECTORS_IN_A_STEP = 12;

/** llama.cpp's tables, vocabulary, chat templates and file cache in the heap. */
const HEAP_BASE_BYTES = 32 * MIB;

/**
 * Room beyond the estimate for requests with their prompts and grammars, which is freed after each answer, and for
 * llama.cpp's work buffer, which is hardly ever touched. Few engines need it, so it is not reserved: the part of the
 * machine's memory that models may not use is enough.
 */
const REQUESTS_BYTES = 320 * MIB;

/**
 * The same for a projector: its work buffer, images while they are decoded, and the attention scores of their patches,
 * whose size is not in the header.
 */
const IMAGES_BYTES = 2048 * MIB;

/** Margin of error: architectures differ in what they keep in addition to weights and KV cache. */
const ESTIMATE_ERROR = 1 / 8;

/** Node, the worker and the compiled WASM, with one thread. */
const PROCESS_BASE_BYTES = 232 * MIB;

/** A thread's copy of the scripts and its stack. */
const THREAD_BYTES = 24 * MIB;

/** How much memory an engine needs at its peak, estimated from the header of its model. */
export function estimateMemory(question: MemoryQuestion): MemoryEstimate {
  const { fileBytes, spec } = question;
  const kvBytes =
    (kvBytesPerToken(question.kvBytesPerToken, spec) + (spec.draft?.kvBytesPerToken ?? 0)) *
    contextTokens(spec);
  const heapBytes = Math.ceil(
    fileBytes + kvBytes + stepBytes(question) + HEAP_BASE_BYTES + (spec.promptCacheBytes ?? 0),
  );
  const workers = Math.max(spec.threads, spec.hearsAudio ? AUDIO_THREADS : 1);
  const threads = workers > 1 ? workers : 0; // a single thread is the worker itself
  const roomBytes = REQUESTS_BYTES + (spec.projectorFile === undefined ? 0 : IMAGES_BYTES);
  const heapLimitBytes = Math.ceil(heapBytes * (1 + ESTIMATE_ERROR) + plannedBytes(question) + roomBytes);
  return { heapBytes, heapLimitBytes, totalBytes: heapBytes + PROCESS_BASE_BYTES + threads * THREAD_BYTES };
}

/** @throws ServiceError insufficient_memory when a model cannot fit into an engine on any machine */
export function checkHeapLimit({ heapBytes }: MemoryEstimate, limitBytes: number): void {
  if (heapBytes <= limitBytes) return;
  throw new ServiceError(
    "insufficient_memory",
    `The model needs about ${mib(heapBytes)} MiB, but an engine can have at most ${mib(limitBytes)} MiB; ` +
      "use a smaller context or a smaller quantization.",
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
 * Bytes of intermediate results per token of a step, without flash attention: its scores in every head for every token
 * of the context, its logits, and vectors.
 */
export function bytesPerStepToken(model: StepModel, contextSize: number): number {
  const { vocabSize, embeddingLength } = model;
  const numbers = heads(model) * contextSize + vocabSize + VECTORS_IN_A_STEP * embeddingLength;
  return numbers * CACHE_TYPE_BYTES.f32;
}

/**
 * llama.cpp allocates room to convert the scores to f16 before it multiplies them with f16 values. Our kernels do not
 * convert them, so that memory is never touched.
 */
function plannedBytes(question: MemoryQuestion): number {
  return scores(question) * CACHE_TYPE_BYTES.f16;
}

/** Attention scores in one step. */
function scores(question: MemoryQuestion): number {
  const { contextSize, batchSize } = question.spec;
  return heads(question) * contextSize * batchSize;
}

function heads({ embeddingLength, headCount }: Pick<StepModel, "embeddingLength" | "headCount">): number {
  return headCount || Math.max(1, embeddingLength / COMMON_HEAD_WIDTH);
}
