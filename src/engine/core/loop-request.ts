import { z } from "zod";
import { toError } from "../../errors/to-error.ts";
import type { Chosen } from "./chosen-tokens.ts";
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
