import { z } from "zod";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { toError } from "../../errors/to-error.ts";
import type { WorkerActions } from "./wllama-api.ts";

/** A result of llama.cpp's server. */
export type RequestResult = { readonly kind: "error"; readonly data: unknown } | AcceptedResult;

export type AcceptedResult =
  | { readonly kind: "data"; readonly data: unknown }
  /** The request was accepted; nothing has been computed yet. */
  | { readonly kind: "accepted" }
  /** A piece was lost because it was not valid UTF-8. */
  | { readonly kind: "unreadable" };

export type StartAction = "completion" | "embedding" | "rerank";

/**
 * Input of a request: a text that is processed in several steps; a text that is processed in one step, however long; or
 * a text with images or recordings, whose steps are not timed or aborted, because those take other times than tokens.
 */
type InputKind = "text" | "whole text" | "media";

export function inputKind(action: StartAction, body: WorkerActions[StartAction]): InputKind {
  if (action !== "completion") return "whole text";
  return "files" in body && body.files.length > 0 ? "media" : "text";
}

/** Receives a result, with the tokens since the one before if the request has a number. */
export type ResultReceiver<Result> = (result: Result, chosen: Chosen | undefined) => void;

/** A request in progress, with the receiver of its results. */
export class LoopRequest {
  readonly id: number;
  readonly kind: InputKind;
  /** See AnswerNumbers. */
  readonly number: number | undefined;
  #onResult: ResultReceiver<RequestResult>;
  #chosen: Chosen | undefined;
  readonly #over = Promise.withResolvers<void>();
  /** Prompt tokens that have been processed; undefined after the whole prompt. */
  promptTokens: number | undefined = 0;
  /** Prompt tokens that are left to process, as far as is known. */
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
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Keeps the tokens of a step until the next result. */
  note({ ids, replaced }: Chosen): void {
    this.#chosen ??= { ids: [], replaced: 0 };
    this.#chosen.ids.push(...ids);
    this.#chosen.replaced += replaced;
  }

  /** Passes on a result; the request fails if the receiver throws. */
  take(result: RequestResult): void {
    const chosen = this.#chosen;
    this.#chosen = undefined;
    try {
      this.#onResult(result, chosen);
    } catch (error) {
      this.fail(error);
    }
  }

  finish(): void {
    this.#over.resolve();
  }

  fail(error: unknown): void {
    this.#over.reject(toError(error));
  }

  /** Drops all further results. */
  abandon(): void {
    this.#onResult = () => undefined;
  }
}

const progressSchema = z.object({
  prompt_progress: z.object({ processed: z.int(), total: z.int(), cache: z.int().default(0) }),
});

/** The progress of the prompt in a result, if it has one. */
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

/** The parts that we use of a chunk from llama.cpp's server, for a chat or a raw completion. */
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
      /** Only where there were guesses. */
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

/** As many as our kernels keep (wasm/kernels/given-tokens.h): more than all slots say in one step. */
const MAX_CHOSEN = 8192;
const [NUMBER, TOKEN, FIELDS] = [0, 1, 2] as const;

/** Tokens of an answer, in their order. */
export interface Chosen {
  readonly ids: number[];
  /** Those of them that were given, and instead of which the model would have said others here. */
  replaced: number;
}

/** Reads which tokens the sampler has chosen for the answers that have a number; our kernels write them down. */
export class ChosenTokens {
  readonly #memory: WebAssembly.Memory;
  #read: number;

  /**
   * @param memory of the WASM, shared with the thread that computes
   * @param read how many tokens have been read
   */
  constructor(memory: WebAssembly.Memory, read = 0) {
    this.#memory = memory;
    this.#read = read;
  }

  /** By the answer's number: those since the last call. To be called between steps, after each one. */
  take(): Map<number, Chosen> {
    const chosen = new Map<number, Chosen>();
    // The buffer is replaced when the memory grows.
    const { buffer } = this.#memory;
    const count = new DataView(buffer).getUint32(MEMORY_CELLS.chosenCount, true);
    if (count === this.#read) return chosen;
    const at = Number(new DataView(buffer).getBigUint64(MEMORY_CELLS.chosenTokens, true));
    const written = new Int32Array(buffer, at, FIELDS * MAX_CHOSEN);
    for (; this.#read !== count; this.#read = (this.#read + 1) >>> 0) {
      const entry = FIELDS * (this.#read % MAX_CHOSEN);
      const [number = 0, token = 0] = [written[entry + NUMBER], written[entry + TOKEN]];
      const known = chosen.get(number) ?? { ids: [], replaced: 0 };
      chosen.set(number, known);
      // Turned over where it replaces what the model would have said.
      known.ids.push(token < 0 ? ~token : token);
      if (token < 0) known.replaced += 1;
    }
    return chosen;
  }
}
