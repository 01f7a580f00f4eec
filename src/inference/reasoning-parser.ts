import type { GenerationEvent, TokenLogprob } from "../engine/protocol/generation.ts";
import { type EventReader, partialTagLength } from "./stream-filters.ts";

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
    const whole = this.#held.slice(0, this.#held.length - partialTagLength(this.#held, this.#tags.end));
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

/** Reasoning that ends after this many tokens, whatever the model has left to think. */
export interface LimitedReasoning {
  readonly budget: number;
  readonly tags: ReasoningTags;
}

type TextDelta = Extract<GenerationEvent, { type: "text-delta" }>;

/** Characters of an answer that are held back, as the model may still be thinking: two or three short sentences. */
const MAX_HELD = 120;
/** Blanks around reasoning, which are dropped, and tags. */
const UNSEEN_TOKENS = 16;

const TAGS: readonly ReasoningTags[] = [
  { start: "<think>", end: "</think>" },
  { start: "[THINK]", end: "[/THINK]" },
  { start: "<seed:think>", end: "</seed:think>" },
  { start: "<|START_THINKING|>", end: "<|END_THINKING|>" },
];

/** The tags around reasoning in a chat template whose reasoning llama.cpp reads. */
export function tagsOfTemplate(template: string | undefined): ReasoningTags | undefined {
  return TAGS.find(({ end }) => template?.includes(end));
}

/**
 * Some models that are cut off in their reasoning think on, and end it a second time. What stands before that end becomes
 * reasoning, unless it is too long to be held back: then only the tag is dropped.
 */
export function dropLateEnd({ budget, tags }: LimitedReasoning): EventReader {
  const reader = new LateEndReader(tags);
  let bytes = 0;
  return function* (event) {
    if (event.type === "reasoning-delta") bytes += new TextEncoder().encode(event.text).length;
    // A token has at least one byte: with fewer, the model has ended its reasoning itself.
    const isCut = bytes + UNSEEN_TOKENS >= budget;
    if (event.type === "text-delta" && isCut) yield* reader.push(event, bytes > 0);
    else {
      if (["reasoning-delta", "tool-call-start", "done"].includes(event.type)) yield* reader.flush();
      yield event;
    }
  };
}

class LateEndReader {
  readonly #tags: ReasoningTags;
  #state: "held" | "blank" | "sent" | "about tags" = "held";
  #held: TextDelta[] = [];
  /** Between the reasoning and what comes behind it. */
  #separator = "";

  constructor(tags: ReasoningTags) {
    this.#tags = tags;
  }

  *push(event: TextDelta, hasReasoned: boolean): Generator<GenerationEvent> {
    this.#separator = hasReasoned ? "\n" : "";
    const shown = this.#state === "blank" ? { ...event, text: event.text.trimStart() } : event;
    if (this.#state === "blank" && shown.text === "") return;
    if (this.#state === "blank") this.#state = "sent";
    this.#held.push(shown);
    yield* this.#read();
  }

  /** The held text is a part of the answer. */
  *flush(): Generator<GenerationEvent> {
    yield* this.#held;
    this.#held = [];
  }

  *#read(): Generator<GenerationEvent> {
    const text = this.#heldText();
    const { start, end } = this.#tags;
    const at = text.indexOf(end);
    const startsAt = start === "" ? -1 : text.indexOf(start);
    if (startsAt >= 0 && (at < 0 || startsAt < at)) this.#state = "about tags";
    if (this.#state === "about tags") yield* this.flush();
    else if (at >= 0) yield* this.#drop(text, at);
    else if (this.#state === "sent" || text.length > MAX_HELD) {
      this.#state = "sent";
      yield* this.#release(
        text.length - Math.max(partialTagLength(text, end), partialTagLength(text, start)),
      );
    }
  }

  *#drop(text: string, at: number): Generator<GenerationEvent> {
    const { end } = this.#tags;
    const last = this.#held.at(-1);
    const soFar = last?.soFar && { soFar: last.soFar };
    let rest: string;
    if (this.#state === "held") {
      const thought = text.slice(0, at).trim();
      if (thought !== "") yield { type: "reasoning-delta", text: this.#separator + thought, ...soFar };
      rest = text.slice(at + end.length).trimStart();
      this.#state = rest === "" ? "blank" : "sent";
    } else {
      yield* this.#release(at);
      rest = this.#heldText().replace(end, "");
    }
    this.#held = rest === "" ? [] : [{ type: "text-delta", text: rest, ...soFar }];
    if (rest !== "") yield* this.#read();
  }

  #heldText(): string {
    return this.#held.map(({ text }) => text).join("");
  }

  /** Sends the pieces that end within the first characters. */
  *#release(length: number): Generator<GenerationEvent> {
    let left = length;
    for (let next = this.#held[0]; next && next.text.length <= left; next = this.#held[0]) {
      left -= next.text.length;
      this.#held.shift();
      yield next;
    }
  }
}
