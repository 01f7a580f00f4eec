import { MIB, formatMebibytes } from "../json/quantities.ts";
import { ServiceError } from "../errors/service-error.ts";
import { AUDIO_THREADS } from "./core/worker-patches.ts";
import { CACHE_TYPE_BYTES, contextTokens, type EngineSpec, kvBytesPerToken } from "./protocol/engine-spec.ts";

/** Figures that determine the size of a step's intermediate results. */
type StepModel = Pick<MemoryInput, "vocabSize" | "embeddingLength" | "headCount">;

export interface MemoryInput {
  /** Bytes of the model's files, including projector and adapters: weights are in memory once, unchanged. */
  readonly fileBytes: number;
  /** Bytes of KV cache per token at f16. */
  readonly kvBytesPerToken: number;
  readonly vocabSize: number;
  readonly embeddingLength: number;
  /** Maximum of attention heads in any layer; 0: unknown. */
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
   * Largest heap: the estimate plus a reserve for sizes that are not in the header. An engine that needs more may be
   * under attack, for example by a chat template.
   */
  readonly heapLimitBytes: number;
  /** Whole process. */
  readonly totalBytes: number;
}

/** Width of an attention head in most models, for headers that do not state the number of heads. */
const COMMON_HEAD_WIDTH = 64;

/** Vectors of the embedding length that a step needs at once: residual, queries, keys, values, feed-forward. */
export const VECTORS_IN_A_STEP = 12;

/** llama.cpp's tables, vocabulary, chat templates and file cache in the heap. */
const HEAP_BASE_BYTES = 32 * MIB;

/**
 * Reserve for requests with their prompts and grammars, freed after each answer, and for llama.cpp's work buffer, most of
 * which is never touched. Few engines need it, so it does not count as used: the part of the machine's memory that models
 * may not use is enough.
 */
const REQUEST_HEADROOM_BYTES = 320 * MIB;

/**
 * Reserve for a multimodal projector: its work buffer, images while they are decoded, and the attention scores of their
 * patches, whose size is not in the header.
 */
const PROJECTOR_HEADROOM_BYTES = 2048 * MIB;

/** Margin of error: architectures have different buffers in addition to weights and KV cache. */
const ESTIMATE_ERROR = 1 / 8;

/** Node, the worker and the compiled WASM, with one thread. */
const PROCESS_BASE_BYTES = 232 * MIB;

/** A thread's copy of the scripts and its stack. */
const THREAD_BYTES = 24 * MIB;

/** Estimates the peak memory of an engine from the header of its model. */
export function estimateMemory(question: MemoryInput): MemoryEstimate {
  const { fileBytes, spec } = question;
  const { contextSize, batchSize } = spec;
  const kvBytes =
    (kvBytesPerToken(question.kvBytesPerToken, spec) + (spec.draft?.kvBytesPerToken ?? 0)) *
    contextTokens(spec);
  const heapBytes = Math.ceil(
    fileBytes +
      kvBytes +
      batchSize * bytesPerStepToken(question, contextSize) +
      HEAP_BASE_BYTES +
      (spec.promptCacheBytes ?? 0),
  );
  const workers = Math.max(spec.threads, spec.hearsAudio ? AUDIO_THREADS : 1);
  const threads = workers > 1 ? workers : 0; // a single thread is the worker itself
  const headroomBytes =
    REQUEST_HEADROOM_BYTES + (spec.projectorFile === undefined ? 0 : PROJECTOR_HEADROOM_BYTES);
  // llama.cpp allocates memory to convert attention scores to f16 before it multiplies them with f16 values. Our kernels do
  // not convert them, so this memory is never touched.
  const plannedBytes = headsOf(question) * contextSize * batchSize * CACHE_TYPE_BYTES.f16;
  const heapLimitBytes = Math.ceil(heapBytes * (1 + ESTIMATE_ERROR) + plannedBytes + headroomBytes);
  return { heapBytes, heapLimitBytes, totalBytes: heapBytes + PROCESS_BASE_BYTES + threads * THREAD_BYTES };
}

/** @throws ServiceError insufficient_memory when a model cannot fit into an engine on any machine */
export function checkHeapLimit({ heapBytes }: MemoryEstimate, limitBytes: number): void {
  if (heapBytes <= limitBytes) return;
  throw new ServiceError(
    "insufficient_memory",
    `The model needs about ${formatMebibytes(heapBytes)}, but an engine can have at most ${formatMebibytes(limitBytes)}; ` +
      "use a smaller context or a smaller quantization.",
  );
}

/**
 * Bytes of intermediate results per token of a step, without flash attention: attention scores in every head for every
 * token of the context, logits, and {@link VECTORS_IN_A_STEP} vectors.
 */
export function bytesPerStepToken(model: StepModel, contextSize: number): number {
  const { vocabSize, embeddingLength } = model;
  const numbers = headsOf(model) * contextSize + vocabSize + VECTORS_IN_A_STEP * embeddingLength;
  return numbers * CACHE_TYPE_BYTES.f32;
}

function headsOf({ embeddingLength, headCount }: Pick<StepModel, "embeddingLength" | "headCount">): number {
  return headCount || Math.max(1, embeddingLength / COMMON_HEAD_WIDTH);
}
