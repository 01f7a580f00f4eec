import type { GenerationEvent, TokenLogprob } from "../engine/protocol/generation.ts";
import { type EventFilter, lengthBefore, partialTagLength } from "./stream-filters.ts";

/** Tags around a model's reasoning: THINKING of a Modelfile. */
export interface ReasoningTags {
  readonly start: string;
  readonly end: string;
}

/**
 * Creates a filter that turns text between the tags into reasoning, for models whose template does not describe it.
 * Reasoning is only recognized at the very beginning of the answer; a later tag is text. Whitespace around the tags is
 * dropped. Tags may be split over any number of deltas.
 */
export function splitReasoning(tags: ReasoningTags): EventFilter {
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
  #buffered = "";
  #hasReasoned = false;
  #logprobs: TokenLogprob[] = [];

  constructor(tags: ReasoningTags) {
    this.#tags = tags;
  }

  *push(text: string, logprobs: readonly TokenLogprob[] = []): Generator<GenerationEvent> {
    this.#buffered += text;
    this.#logprobs.push(...logprobs);
    if (this.#state === "before") this.#findStart();
    if (this.#state === "inside") yield* this.#readReasoning();
    if (this.#state === "after") this.#skipBlank();
    if (this.#state === "text") yield* this.#release();
  }

  /** Emits the buffered text, which is not a tag. */
  *flush(): Generator<GenerationEvent> {
    if (this.#state === "inside") yield* this.#emitReasoning(this.#buffered);
    else if (this.#state !== "after") yield* this.#release();
    this.#buffered = "";
    this.#state = "text";
  }

  #findStart(): void {
    const text = this.#buffered.trimStart();
    if (text.startsWith(this.#tags.start)) {
      this.#buffered = text.slice(this.#tags.start.length);
      this.#logprobs = [];
      this.#state = "inside";
    } else if (!this.#tags.start.startsWith(text)) {
      this.#state = "text";
    }
  }

  *#readReasoning(): Generator<GenerationEvent> {
    if (!this.#hasReasoned) this.#buffered = this.#buffered.trimStart();
    const end = this.#buffered.indexOf(this.#tags.end);
    if (end >= 0) {
      yield* this.#emitReasoning(this.#buffered.slice(0, end).trimEnd());
      this.#buffered = this.#buffered.slice(end + this.#tags.end.length);
      this.#logprobs = [];
      this.#state = "after";
      return;
    }
    // Whitespace before the end tag is dropped, so trailing whitespace is buffered with a partial tag.
    const ready = lengthBefore(this.#buffered, this.#tags.end);
    yield* this.#emitReasoning(this.#buffered.slice(0, ready));
    this.#buffered = this.#buffered.slice(ready);
    this.#logprobs = [];
  }

  #skipBlank(): void {
    this.#buffered = this.#buffered.trimStart();
    if (this.#buffered !== "") this.#state = "text";
  }

  *#emitReasoning(text: string): Generator<GenerationEvent> {
    if (text === "") return;
    this.#hasReasoned = true;
    yield { type: "reasoning-delta", text };
  }

  *#release(): Generator<GenerationEvent> {
    if (this.#buffered === "" && this.#logprobs.length === 0) return;
    const logprobs = this.#logprobs;
    yield { type: "text-delta", text: this.#buffered, ...(logprobs.length > 0 && { logprobs }) };
    this.#buffered = "";
    this.#logprobs = [];
  }
}

/** Reasoning that is cut off after `budget` tokens. */
export interface LimitedReasoning {
  readonly budget: number;
  readonly tags: ReasoningTags;
}

type TextDelta = Extract<GenerationEvent, { type: "text-delta" }>;

/** Most characters of an answer that are buffered because the model may still be reasoning: two or three sentences. */
const MAX_BUFFERED = 120;
/** Allowance for tokens that are not in the reasoning's text: whitespace around it, which is dropped, and tags. */
const HIDDEN_TOKENS = 16;

const TAGS: readonly ReasoningTags[] = [
  { start: "<think>", end: "</think>" },
  { start: "[THINK]", end: "[/THINK]" },
  { start: "<seed:think>", end: "</seed:think>" },
  { start: "<|START_THINKING|>", end: "<|END_THINKING|>" },
];

/** Returns the reasoning tags of a chat template whose reasoning llama.cpp parses. */
export function tagsOfTemplate(template: string | undefined): ReasoningTags | undefined {
  return TAGS.find(({ end }) => template?.includes(end));
}

/**
 * Creates a filter for reasoning that continues after it was cut off at its budget: some models then write a second end
 * tag. The text before that tag becomes reasoning, unless it is too long to be buffered: then only the tag is dropped.
 */
export function dropLateEnd({ budget, tags }: LimitedReasoning): EventFilter {
  const reader = new LateEndReader(tags);
  let bytes = 0;
  return function* (event) {
    if (event.type === "reasoning-delta") bytes += new TextEncoder().encode(event.text).length;
    // A token has at least one byte: with fewer bytes than the budget, the model ended its reasoning itself.
    const isCut = bytes + HIDDEN_TOKENS >= budget;
    if (event.type === "text-delta" && isCut) yield* reader.push(event, bytes > 0);
    else {
      if (["reasoning-delta", "tool-call-start", "done"].includes(event.type)) yield* reader.flush();
      yield event;
    }
  };
}

class LateEndReader {
  readonly #tags: ReasoningTags;
  #state: "buffering" | "blank" | "sent" | "mentions tags" = "buffering";
  #buffered: TextDelta[] = [];
  /** Separator between the reasoning and its continuation. */
  #separator = "";

  constructor(tags: ReasoningTags) {
    this.#tags = tags;
  }

  *push(event: TextDelta, hasReasoned: boolean): Generator<GenerationEvent> {
    this.#separator = hasReasoned ? "\n" : "";
    const trimmed = this.#state === "blank" ? { ...event, text: event.text.trimStart() } : event;
    if (this.#state === "blank" && trimmed.text === "") return;
    if (this.#state === "blank") this.#state = "sent";
    this.#buffered.push(trimmed);
    yield* this.#read();
  }

  /** Emits the buffered text, which is part of the answer. */
  *flush(): Generator<GenerationEvent> {
    yield* this.#buffered;
    this.#buffered = [];
  }

  *#read(): Generator<GenerationEvent> {
    const text = this.#bufferedText();
    const { start, end } = this.#tags;
    const at = text.indexOf(end);
    const startAt = start === "" ? -1 : text.indexOf(start);
    if (startAt >= 0 && (at < 0 || startAt < at)) this.#state = "mentions tags";
    if (this.#state === "mentions tags") yield* this.flush();
    else if (at >= 0) yield* this.#drop(text, at);
    else if (this.#state === "sent" || text.length > MAX_BUFFERED) {
      this.#state = "sent";
      yield* this.#release(
        text.length - Math.max(partialTagLength(text, end), partialTagLength(text, start)),
      );
    }
  }

  *#drop(text: string, at: number): Generator<GenerationEvent> {
    const { end } = this.#tags;
    const last = this.#buffered.at(-1);
    const soFar = last?.soFar && { soFar: last.soFar };
    let rest: string;
    if (this.#state === "buffering") {
      const thought = text.slice(0, at).trim();
      if (thought !== "") yield { type: "reasoning-delta", text: this.#separator + thought, ...soFar };
      rest = text.slice(at + end.length).trimStart();
      this.#state = rest === "" ? "blank" : "sent";
    } else {
      yield* this.#release(at);
      rest = this.#bufferedText().replace(end, "");
    }
    this.#buffered = rest === "" ? [] : [{ type: "text-delta", text: rest, ...soFar }];
    if (rest !== "") yield* this.#read();
  }

  #bufferedText(): string {
    return this.#buffered.map(({ text }) => text).join("");
  }

  /** Emits the deltas that end within the first `length` characters. */
  *#release(length: number): Generator<GenerationEvent> {
    let left = length;
    for (let next = this.#buffered[0]; next && next.text.length <= left; next = this.#buffered[0]) {
      left -= next.text.length;
      this.#buffered.shift();
      yield next;
    }
  }
}
