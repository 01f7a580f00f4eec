import {
  ANSWER_PROGRESS_TOKENS,
  type GenerationEvent,
  type GenerationRequest,
} from "../protocol/generation.ts";
import { AnswerDepth } from "./answer-depth.ts";
import { ChunkReader } from "./chunk-reader.ts";
import type { Chosen } from "./chosen-tokens.ts";
import { completionResultSchema } from "./completion-chunk.ts";
import { unreadableAnswer } from "./engine-failure.ts";
import type { AcceptedResult } from "./loop-request.ts";
import type { RoomShare } from "./shared-room.ts";

/** Turns the results of one generation into events. */
export class AnswerReader {
  readonly #request: GenerationRequest;
  readonly #share: RoomShare | undefined;
  readonly #onEvent: (event: GenerationEvent) => void;
  readonly #chunks: ChunkReader;
  readonly #depth: AnswerDepth;
  #isStarted = false;
  #isLastLost = false;
  #reported = 0;
  #isFull = false;

  /** @param share what it uses of a context that it shares with others; absent: it has its own */
  constructor(
    request: GenerationRequest,
    share: RoomShare | undefined,
    onEvent: (event: GenerationEvent) => void,
  ) {
    this.#request = request;
    this.#share = share;
    this.#onEvent = onEvent;
    this.#chunks = new ChunkReader({
      maxTokens: request.maxTokens,
      topLogprobs: request.logprobs ?? 0,
      details: request.details,
      timings: request.timings,
      countsGuesses: request.given === undefined,
    });
    this.#depth = new AnswerDepth(request.format);
  }

  /** True when it has been ended for lack of room. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Throws when the generation has to end. @param chosen the tokens since the last result, if they are to be told */
  take(result: AcceptedResult, chosen?: Chosen): void {
    if (!this.#isStarted) this.#onEvent({ type: "start" });
    this.#isStarted = true;
    // Before their text, of which nobody then has a piece without its tokens.
    if (chosen && this.#request.reportsTokens) this.#onEvent({ type: "tokens", ...chosen });
    this.#isLastLost = result.kind === "unreadable";
    if (this.#isLastLost) this.#onEvent(this.#chunks.unreadable());
    if (result.kind === "accepted") return;
    const chunks = result.kind === "data" ? completionResultSchema.parse(result.data) : [];
    for (const chunk of chunks) {
      for (const event of this.#chunks.push(chunk)) {
        this.#depth.check(event);
        this.#onEvent(event);
      }
    }
    if (!this.#share) return;
    this.#isFull = !this.#share.take(chunks);
    if (this.#isFull) throw new Error("the context is full");
    const { tokens } = this.#share;
    if (tokens - this.#reported < ANSWER_PROGRESS_TOKENS) return;
    this.#reported = tokens;
    this.#onEvent(this.#chunks.progress(tokens));
  }

  /** Tells the end. */
  finish(): void {
    const done = this.#chunks.finish();
    if (this.#isFull) return this.#onEvent({ ...done, reason: "length" });
    // With a grammar, the lost result may have been an error message that quotes the answer.
    if (this.#isLastLost && this.#request.format.type !== "text") throw unreadableAnswer();
    this.#onEvent(done);
  }
}
