import { z } from "zod";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { toError } from "../../errors/service-error.ts";
import type { WorkerActions } from "./wllama-api.ts";

export type RequestResult = { readonly kind: "error"; readonly data: unknown } | AcceptedResult;

export type AcceptedResult =
  | { readonly kind: "data"; readonly data: unknown }
  /** The request was accepted; nothing has been computed yet. */
  | { readonly kind: "accepted" }
  /** Text was lost because it was not valid UTF-8. */
  | { readonly kind: "unreadable" };

export type StartAction = "completion" | "embedding" | "rerank";

/**
 * Input of a request: a text that may be processed in several steps; a text that must be processed in one step; or a
 * text with images or recordings. Steps with media are neither timed nor aborted, because their duration does not
 * depend on the number of tokens.
 */
type InputKind = "text" | "one-step text" | "media";

export function inputKind(action: StartAction, body: WorkerActions[StartAction]): InputKind {
  if (action !== "completion") return "one-step text";
  return "files" in body && body.files.length > 0 ? "media" : "text";
}

/** Receives a result, with the tokens since the previous one if the request has a number. */
export type ResultReceiver<Result> = (result: Result, sampled: SampledTokens | undefined) => void;

/** A request in progress and the receiver of its results. */
export class LoopRequest {
  readonly id: number;
  readonly kind: InputKind;
  readonly number: number | undefined;
  #onResult: ResultReceiver<RequestResult>;
  #sampled: SampledTokens | undefined;
  readonly #done = Promise.withResolvers<void>();
  /** Prompt tokens that have been processed; undefined after the prompt. */
  promptTokens: number | undefined = 0;
  /** Prompt tokens that are left to process, if known. */
  tokensLeft = 0;

  constructor(
    id: number,
    kind: InputKind,
    onResult: ResultReceiver<RequestResult>,
    number: number | undefined,
  ) {
    this.id = id;
    this.kind = kind;
    this.number = number;
    this.#onResult = onResult;
  }

  /** Resolves after the last result; rejects when the request fails. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Adds the tokens of a step, which are passed on with the next result. */
  addTokens({ ids, replaced }: SampledTokens): void {
    this.#sampled ??= { ids: [], replaced: 0 };
    this.#sampled.ids.push(...ids);
    this.#sampled.replaced += replaced;
  }

  /** Passes a result to the receiver. The request fails if the receiver throws. */
  deliver(result: RequestResult): void {
    const sampled = this.#sampled;
    this.#sampled = undefined;
    try {
      this.#onResult(result, sampled);
    } catch (error) {
      this.fail(error);
    }
  }

  finish(): void {
    this.#done.resolve();
  }

  fail(error: unknown): void {
    this.#done.reject(toError(error));
  }

  ignoreResults(): void {
    this.#onResult = () => undefined;
  }
}

const progressSchema = z.object({
  prompt_progress: z.object({ processed: z.int(), total: z.int(), cache: z.int().default(0) }),
});

/** Returns the prompt progress of a result, if it has any. */
export function progressOf(data: unknown): z.infer<typeof progressSchema>["prompt_progress"] | undefined {
  return progressSchema.safeParse(Array.isArray(data) ? (data as unknown[])[0] : data).data?.prompt_progress;
}

const logprobSchema = z.object({
  id: z.int(),
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.number()).nullish(),
});
export type ChunkLogprob = z.infer<typeof logprobSchema>;

const tokenSchema = logprobSchema.extend({ top_logprobs: z.array(logprobSchema).optional() });
export type ChunkToken = z.infer<typeof tokenSchema>;

const deltaSchema = z.object({
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        index: z.int().min(0).optional(),
        id: z.string().optional(),
        function: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
      }),
    )
    .optional(),
});
export type ChunkDelta = z.infer<typeof deltaSchema>;

/** The fields that we use of a chunk of llama.cpp's server, of a chat or a raw completion. */
const completionChunkSchema = z.object({
  choices: z
    .array(
      z.object({
        text: z.string().optional(),
        delta: deltaSchema.optional(),
        finish_reason: z.string().nullish(),
        logprobs: z.object({ content: z.array(tokenSchema).nullish() }).nullish(),
      }),
    )
    .optional(),
  usage: z
    .object({
      prompt_tokens: z.int().min(0),
      completion_tokens: z.int().min(0),
      prompt_tokens_details: z.object({ cached_tokens: z.int().min(0) }).optional(),
    })
    .nullish(),
  /** In the last chunk, or with every token when requested. */
  timings: z
    .object({
      prompt_ms: z.number(),
      predicted_ms: z.number(),
      predicted_n: z.int().min(0).optional(),
      cache_n: z.int().min(0).optional(),
      /** Only with speculative decoding. */
      draft_n: z.int().min(0).optional(),
      draft_n_accepted: z.int().min(0).optional(),
    })
    .optional(),
  prompt_progress: z
    .object({
      processed: z.int().min(0),
      total: z.int().min(0),
      cache: z.int().min(0).optional(),
      time_ms: z.number().min(0).optional(),
    })
    .optional(),
  /** Only in verbose answers. */
  __verbose: z
    .object({
      stopping_word: z.string().optional(),
      prompt: z.string().optional(),
      id_slot: z.int().optional(),
      tokens_cached: z.int().optional(),
      truncated: z.boolean().optional(),
    })
    .optional(),
});
export type CompletionChunk = z.infer<typeof completionChunkSchema>;

/** A result is one chunk or an array of chunks. */
export const completionResultSchema = z
  .union([z.array(completionChunkSchema), completionChunkSchema])
  .transform((result) => (Array.isArray(result) ? result : [result]));

/** Capacity of our kernels' ring buffer (wasm/kernels/given-tokens.h), more than all slots generate in one step. */
const MAX_SAMPLED = 8192;
const [NUMBER, TOKEN, FIELDS] = [0, 1, 2] as const;

/** Consecutive tokens of an answer. */
export interface SampledTokens {
  readonly ids: number[];
  /** Number of these that are prefix tokens and differ from the tokens that the model would have generated. */
  replaced: number;
}

/** Reads the sampled tokens of all requests with a number, which our kernels write to a ring buffer. */
export class SampledTokenReader {
  readonly #memory: WebAssembly.Memory;
  #read: number;

  /**
   * @param memory memory of the WASM, shared with the thread that computes
   * @param read number of tokens that have been read
   */
  constructor(memory: WebAssembly.Memory, read = 0) {
    this.#memory = memory;
    this.#read = read;
  }

  /** Returns the tokens since the last call by request number. Call it after each step. */
  take(): Map<number, SampledTokens> {
    const sampled = new Map<number, SampledTokens>();
    // The buffer is replaced when the memory grows.
    const { buffer } = this.#memory;
    const count = new DataView(buffer).getUint32(MEMORY_CELLS.chosenCount, true);
    if (count === this.#read) return sampled;
    const at = Number(new DataView(buffer).getBigUint64(MEMORY_CELLS.chosenTokens, true));
    const written = new Int32Array(buffer, at, FIELDS * MAX_SAMPLED);
    for (; this.#read !== count; this.#read = (this.#read + 1) >>> 0) {
      const entry = FIELDS * (this.#read % MAX_SAMPLED);
      const [number = 0, token = 0] = [written[entry + NUMBER], written[entry + TOKEN]];
      const entries = sampled.get(number) ?? { ids: [], replaced: 0 };
      sampled.set(number, entries);
      // Our kernels write the complement of a prefix token that replaces another token.
      entries.ids.push(token < 0 ? ~token : token);
      if (token < 0) entries.replaced += 1;
    }
    return sampled;
  }
}
