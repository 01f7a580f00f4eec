import type { EngineInfo, EngineSpec } from "./protocol/engine-spec.ts";
import type { GenerationEvent, GenerationRequest } from "./protocol/generation.ts";
import type {
  EmbeddingResult,
  RerankResult,
  TokenIds,
  TokenizeOptions,
  TokenPieces,
} from "./protocol/calls.ts";

/** Why an engine is gone. */
export interface EngineExit {
  /** True after {@link Engine.close}; false after a crash, a hang or a kill. */
  expected: boolean;
  /** For people: "aborted: …", "killed by SIGKILL", "did not answer for 60 s". */
  reason: string;
}

/**
 * A running engine, seen from the daemon: one process, one loaded model. It does not queue: the caller keeps
 * at most `spec.slots` calls in flight, generations, embeddings and rerankings together, and their requests within
 * the limits that keep one of them from blocking the engine.
 *
 * All methods reject with a ServiceError: `engine_crashed` when the process ends under the call,
 * `deadline_exceeded` when it stops answering, `inference_failed` or a 4xx code when only this call failed.
 */
export interface Engine {
  readonly spec: EngineSpec;
  readonly info: EngineInfo;
  readonly pid: number;
  /** False once the process has ended or is ending. */
  readonly alive: boolean;
  /** Settles when the process has ended; never rejects. */
  readonly exited: Promise<EngineExit>;
  /**
   * Runs one generation and hands over its events, in their order; the last is `done`. Resolves after it, and rejects
   * with the signal's reason when that aborts; the slot is free again when this settles. No event comes after an abort.
   */
  generate(
    request: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** Embeds one text; the caller splits a batch into texts. */
  embed(text: string, signal: AbortSignal): Promise<EmbeddingResult>;
  /** Scores one document against a query. */
  rerank(query: string, document: string, signal: AbortSignal): Promise<RerankResult>;
  /** Turns a text into tokens by llama.cpp's own tokenizer. Takes no slot: it runs between the steps of others. */
  tokenize(text: string, options: TokenizeOptions, signal: AbortSignal): Promise<TokenIds>;
  /** The bytes that tokens stand for. Takes no slot either. */
  pieces(tokens: TokenIds, signal: AbortSignal): Promise<TokenPieces>;
  /** Resident memory of the process in bytes, 0 when it is gone. */
  memoryUsage(): Promise<number>;
  /** Ends the process and waits until it is gone. Calls in flight reject with `engine_crashed`. */
  close(): Promise<void>;
}

export interface EngineLoadOptions {
  /** Called with 0..1 as the file is read. */
  onProgress?: (progress: number) => void;
  /** The model's name, for messages. */
  alias?: string;
  /** Aborting ends the process; the start rejects with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Called before the engine is started differently than was asked, which may take more memory. A rejection ends the
   * start, with the same error.
   */
  makeRoom?: (spec: EngineSpec) => Promise<void>;
  /**
   * Bytes that the heap of the engine may grow to, which is started with this specification; what needs more fails
   * inside the engine. Absent: as far as its WebAssembly can.
   */
  heapLimit?: (spec: EngineSpec) => number;
}

/**
 * Starts an engine process and loads the model. Rejects with a ServiceError (`model_load_failed`,
 * `invalid_model_file`, `insufficient_memory`, `deadline_exceeded`) and leaves no process running.
 */
export type StartEngine = (spec: EngineSpec, options?: EngineLoadOptions) => Promise<Engine>;
