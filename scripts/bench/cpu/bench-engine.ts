import type { Clock } from "./processor-time.ts";

/** One run of a workload. */
interface Rates {
  /** Tokens of the prompt a second. */
  readonly prefill: number;
  /** Generated tokens a second, without the first, which comes with the prompt. */
  readonly decode: number;
}

export interface Workload {
  /** Tokens of context before the prompt, computed once and not timed; absent: none. */
  readonly depth?: number;
  /** Tokens of the prompt, the begin of the sequence included where nothing comes before. */
  readonly promptTokens: number;
  /** Tokens to generate. */
  readonly tokens: number;
}

export const CACHE_TYPES = ["f16", "q8_0"] as const;
type CacheType = (typeof CACHE_TYPES)[number];

export interface BenchSettings {
  readonly file: string;
  readonly threads: number;
  /** Sequences that can be decoded together. */
  readonly slots: number;
  /** Tokens of prompt in one step. */
  readonly batchSize: number;
  /** Tokens of context for all sequences. */
  readonly contextSize: number;
  readonly flashAttention: boolean;
  /** Type of keys and values in the context. */
  readonly cacheType: CacheType;
  readonly clock: Clock;
}

/** A loaded model in a separate process. Prompts are those of benchPrompt(); apart from their depth, no cache has them. */
export interface BenchEngine {
  /** Version of the engine, for the table's caption. */
  readonly version: string;
  /** @param salt - another number is another prompt of the same length */
  measure(workload: Workload, salt: number): Promise<Rates>;
  /** Generated tokens per second of several sequences together, after prompts that are computed beforehand. */
  measureStreams(streams: number, workload: Workload, salt: number): Promise<number>;
  close(): Promise<void>;
}
