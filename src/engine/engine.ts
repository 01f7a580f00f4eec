import type { EngineInfo, EngineSpec } from "./protocol/engine-spec.ts";
import type { GenerationEvent, GenerationRequest } from "./protocol/generation.ts";
import type {
  EmbeddingResult,
  RerankResult,
  SlotRequest,
  SlotResult,
  TokenIds,
  TokenizeOptions,
  TokenPieces,
} from "./protocol/calls.ts";

/** End of an engine, and the reason. */
export interface EngineExit {
  /** True after {@link Engine.close}; false after a crash, a hang or a kill. */
  expected: boolean;
  /** For people: "aborted: …", "killed by SIGKILL", "did not answer for 60 s". */
  reason: string;
}

/**
 * A running engine: one process, one loaded model. It does not queue: the caller keeps at most `spec.slots`
 * generations, embeddings and rerankings in flight.
 *
 * All methods reject with a ServiceError: `engine_crashed` when the process ends during the call, `deadline_exceeded`
 * when it stops answering, `inference_failed` or a 4xx code when only this call failed.
 */
export interface Engine {
  readonly spec: EngineSpec;
  readonly info: EngineInfo;
  readonly pid: number;
  /** False when the process has ended or is ending. */
  readonly alive: boolean;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<EngineExit>;
  /**
   * Runs one generation and passes on its events in order; the last is `done`. Rejects with the signal's reason when it
   * aborts; no event follows. The slot is free when this settles.
   */
  generate(
    request: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** Embeds one text. */
  embed(text: string, signal: AbortSignal): Promise<EmbeddingResult>;
  /** Scores one document against a query. */
  rerank(query: string, document: string, signal: AbortSignal): Promise<RerankResult>;
  /** Tokenizes a text with llama.cpp's tokenizer. Does not take a slot: it runs between the steps of other calls. */
  tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds>;
  /** Returns the bytes of each token. Does not take a slot. */
  pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces>;
  /** Runs one step of saving or restoring a slot, for `EngineSlots`. Does not take a slot. */
  slots(request: SlotRequest, signal: AbortSignal): Promise<SlotResult>;
  /** Resident memory of the process in bytes; 0 when it is gone. */
  memoryUsage(): Promise<number>;
  /** Ends the process and waits until it is gone. Calls in flight reject with `model_not_loaded`. */
  close(): Promise<void>;
}

export interface EngineLoadOptions {
  /** Called with 0..1 while the file is read. */
  onProgress?: (progress: number) => void;
  /** The model's name, for messages. */
  alias?: string;
  /** Aborting ends the process, and the start rejects with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Called before the engine is started with other settings than requested, which may need more memory. If it rejects,
   * the start rejects with the same error.
   */
  reserveMemory?: (spec: EngineSpec) => Promise<void>;
  /**
   * Largest heap in bytes of an engine with these settings; larger allocations fail inside the engine. Absent: the limit
   * of its WebAssembly.
   */
  heapLimit?: (spec: EngineSpec) => number;
}

/**
 * Starts an engine process and loads the model. Rejects with a ServiceError (`model_load_failed`,
 * `invalid_model_file`, `insufficient_memory`, `deadline_exceeded`) and leaves no process running.
 */
export type StartEngine = (spec: EngineSpec, options?: EngineLoadOptions) => Promise<Engine>;
