import type { GenerationEvent, TokenLogprob } from "../engine/protocol/generation.ts";
import type { EventReader } from "./event-reader.ts";
import { heldTagLength } from "./held-tag.ts";

/** The tags that begin and end a model's reasoning: THINKING of a Modelfile. */
export interface ReasoningTags {
  readonly start: string;
  readonly end: string;
}

/**
 * Turns text between the tags into reasoning, for models whose template does not describe it. Reasoning is only recognized
 * at the very beginning of the answer; a later tag is text. Whitespace around the tags is dropped. Tags may be split over
 * any number of pieces.
 */
export function splitReasoning(tags: ReasoningTags): EventReader {
  const splitter = new ReasoningSplitter(tags);
  return function* (event) {
    if (event.type === "text-delta") yield* splitter.push(event.text, event.logprobs);
    else if (event.type === "start" || event.type === "prompt-progress") yield event;
    else {
      yield* splitter.flush();
      yield event;
    }
  };
}

type State =
  /** Only whitespace and perhaps a part of the start tag so far. */
  | "before"
  /** Between the tags. */
  | "inside"
  /** After the end tag, while whitespace is dropped. */
  | "after"
  /** The answer itself. */
  | "text";

class ReasoningSplitter {
  readonly #tags: ReasoningTags;
  #state: State = "before";
  #held = "";
  #reasoned = false;
  #logprobs: TokenLogprob[] = [];

  constructor(tags: ReasoningTags) {
    this.#tags = tags;
  }

  *push(text: string, logprobs: readonly TokenLogprob[] = []): Generator<GenerationEvent> {
    this.#held += text;
    this.#logprobs.push(...logprobs);
    if (this.#state === "before") this.#lookForStart();
    if (this.#state === "inside") yield* this.#reason();
    if (this.#state === "after") this.#skipBlank();
    if (this.#state === "text") yield* this.#release();
  }

  /** The held text is not a tag. */
  *flush(): Generator<GenerationEvent> {
    if (this.#state === "inside") yield* this.#emitReasoning(this.#held);
    else if (this.#state !== "after") yield* this.#release();
    this.#held = "";
    this.#state = "text";
  }

  #lookForStart(): void {
    const begun = this.#held.trimStart();
    if (begun.startsWith(this.#tags.start)) {
      this.#held = begun.slice(this.#tags.start.length);
      this.#logprobs = [];
      this.#state = "inside";
    } else if (!this.#tags.start.startsWith(begun)) {
      this.#state = "text";
    }
  }

  *#reason(): Generator<GenerationEvent> {
    if (!this.#reasoned) this.#held = this.#held.trimStart();
    const end = this.#held.indexOf(this.#tags.end);
    if (end >= 0) {
      yield* this.#emitReasoning(this.#held.slice(0, end).trimEnd());
      this.#held = this.#held.slice(end + this.#tags.end.length);
      this.#logprobs = [];
      this.#state = "after";
      return;
    }
    // Whitespace before the end tag is dropped, so trailing whitespace is held back with a partial tag.
    const whole = this.#held.slice(0, this.#held.length - heldTagLength(this.#held, this.#tags.end));
    const ready = whole.trimEnd().length;
    yield* this.#emitReasoning(this.#held.slice(0, ready));
    this.#held = this.#held.slice(ready);
    this.#logprobs = [];
  }

  #skipBlank(): void {
    this.#held = this.#held.trimStart();
    if (this.#held !== "") this.#state = "text";
  }

  *#emitReasoning(text: string): Generator<GenerationEvent> {
    if (text === "") return;
    this.#reasoned = true;
    yield { type: "reasoning-delta", text };
  }

  *#release(): Generator<GenerationEvent> {
    if (this.#held === "" && this.#logprobs.length === 0) return;
    const logprobs = this.#logprobs;
    yield { type: "text-delta", text: this.#held, ...(logprobs.length > 0 && { logprobs }) };
    this.#held = "";
    this.#logprobs = [];
  }
}
