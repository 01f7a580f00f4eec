import type { GenerationEvent } from "../engine/protocol/generation.ts";
import type { EventReader } from "./event-reader.ts";
import { heldTagLength } from "./held-tag.ts";
import type { ReasoningTags } from "./split-reasoning.ts";

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
      yield* this.#release(text.length - Math.max(heldTagLength(text, end), heldTagLength(text, start)));
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
