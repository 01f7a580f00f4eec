import { z } from "zod";
import { toError } from "../../errors/to-error.ts";
import type { WorkerActions } from "./wllama-api.ts";

/** A result as llama.cpp's server would send it. */
export type RequestResult = { readonly kind: "error"; readonly data: unknown } | AcceptedResult;

export type AcceptedResult =
  | { readonly kind: "data"; readonly data: unknown }
  /** The request was accepted; nothing is computed yet. */
  | { readonly kind: "accepted" }
  /** A piece was lost because its text was not UTF-8. */
  | { readonly kind: "unreadable" };

export type StartAction = "completion" | "embedding" | "rerank";

/**
 * What a request brings: a text that is read in steps; one that is computed in one step, however long; or a text with images,
 * whose time is not that of tokens, and in whose computation none of it is left.
 */
type InputKind = "text" | "whole text" | "images";

export function inputKind(action: StartAction, body: WorkerActions[StartAction]): InputKind {
  if (action !== "completion") return "whole text";
  return "files" in body && body.files.length > 0 ? "images" : "text";
}

/** A request under way, and who takes its results. */
export class LoopRequest {
  readonly id: number;
  readonly kind: InputKind;
  #onResult: (result: RequestResult) => void;
  readonly #over = Promise.withResolvers<void>();
  /** Tokens of its prompt that have been read; undefined when all have, and an answer comes. */
  promptTokens: number | undefined = 0;
  /** Tokens of its prompt that are still to be read, as far as is known. */
  tokensLeft = 0;

  constructor(id: number, kind: InputKind, onResult: (result: RequestResult) => void) {
    this.id = id;
    this.kind = kind;
    this.#onResult = onResult;
  }

  /** Settles after the last result; rejects when the request fails. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** What the receiver throws ends the request. */
  take(result: RequestResult): void {
    try {
      this.#onResult(result);
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

  /** Nobody takes its results any more. */
  abandon(): void {
    this.#onResult = () => undefined;
  }
}

const progressSchema = z.object({
  prompt_progress: z.object({ processed: z.int(), total: z.int(), cache: z.int().default(0) }),
});

/** What comes beside a token, in the same step: how far the prompt has been read. */
export function progressOf(data: unknown): z.infer<typeof progressSchema>["prompt_progress"] | undefined {
  return progressSchema.safeParse(Array.isArray(data) ? (data as unknown[])[0] : data).data?.prompt_progress;
}
