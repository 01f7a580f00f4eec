import type { GenerationEvent } from "../engine/protocol/generation.ts";

/**
 * Maps each event of one answer to any number of events. A filter may buffer events until `done` at the latest.
 */
export type EventFilter = (event: GenerationEvent) => Iterable<GenerationEvent>;

/** Passes events through filters, in order. */
export function applyFilters(
  events: readonly GenerationEvent[],
  readers: readonly EventFilter[],
): readonly GenerationEvent[] {
  return readers.reduce((read, reader) => read.flatMap((event) => [...reader(event)]), events);
}

/**
 * Length of the longest end of `text` that is an incomplete beginning of `tag`, which must be buffered because the rest
 * of the tag may follow.
 */
export function partialTagLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}

/** Length of the text before a tag that may have begun, without the whitespace before it. */
export function lengthBefore(text: string, tag: string): number {
  return text.slice(0, text.length - partialTagLength(text, tag)).trimEnd().length;
}

/** Creates a filter that drops the log-probabilities of tokens without text, such as the end-of-turn token. */
export function dropEmptyTokens(): EventFilter {
  return (event) => {
    if (event.type !== "text-delta" || !event.logprobs?.some(({ token }) => token === "")) return [event];
    const logprobs = event.logprobs.filter(({ token }) => token !== "");
    return event.text === "" && logprobs.length === 0 ? [] : [{ ...event, logprobs }];
  };
}

/**
 * Creates a filter that drops the log-probabilities of reasoning and tool calls, which the engine reports in empty text
 * events after their deltas; clients expect those of the text.
 */
export function dropNonTextLogprobs(): EventFilter {
  let isUnseen = false;
  return (event) => {
    if (event.type === "text-delta") {
      if (event.text === "" && isUnseen) return [];
      isUnseen = false;
    } else if (event.type !== "start" && event.type !== "prompt-progress") {
      isUnseen = true;
    }
    return [event];
  };
}

const NO_STATS = {
  usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 0, completionMs: 0 },
};

/**
 * Creates a filter that ends an answer where its second tool call begins, so that the rest is not generated: some
 * models write several calls against their instructions, and not every template has a grammar that prevents it. The
 * first event of the second call has the usage so far.
 */
export function firstCallOnly(): EventFilter {
  return (event) =>
    event.type === "tool-call-start" && event.index > 0
      ? [{ type: "done", reason: "tool_calls", ...(event.soFar ?? NO_STATS) }]
      : [event];
}

/**
 * Creates a filter that drops markup of a template: whitespace around reasoning, and the end-of-turn token.
 * @param endOfTurn that token as text; absent: the engine does not return it
 * @param continuesReasoning true if the answer continues a message, so that leading whitespace is part of its reasoning
 */
export function trimTemplateText(endOfTurn: string | undefined, continuesReasoning: boolean): EventFilter {
  let blanks = "";
  let state: "before" | "reasoning" | "after" | "text" = "before";
  let last: Extract<GenerationEvent, { type: "text-delta" }> | undefined;
  return function* (event) {
    if (last && event.type !== "prompt-progress") {
      const isEnd = event.type === "done" && endOfTurn !== undefined;
      yield isEnd ? { ...last, text: last.text.slice(0, -endOfTurn.length) } : last;
      last = undefined;
    }
    if (event.type === "reasoning-delta") {
      const text = blanks + event.text;
      const isBegun = continuesReasoning || state === "reasoning";
      const trimmed = isBegun ? text.trimEnd() : text.trim();
      // Leading whitespace is dropped.
      blanks = trimmed === "" && !isBegun ? "" : text.slice(text.trimEnd().length);
      if (trimmed === "") return;
      state = "reasoning";
      yield { ...event, text: trimmed };
    } else if (event.type === "text-delta") {
      if (state === "reasoning") state = "after";
      const text = state === "after" ? event.text.trimStart() : event.text;
      if (text !== "") state = "text";
      blanks = "";
      const trimmed = { ...event, text };
      if (text === "" && event.text !== "" && !event.logprobs) return;
      if (endOfTurn !== undefined && text.endsWith(endOfTurn)) last = trimmed;
      else yield trimmed;
    } else yield event;
  };
}

type TextDelta = Extract<GenerationEvent, { type: "text-delta" }>;

/**
 * Creates a filter that drops text which llama.cpp returns again as reasoning: within reasoning, it first returns the
 * beginning of a possible end tag as text. Text after reasoning is buffered while it may be one, and dropped if the
 * reasoning continues.
 * @param tags possible end tags
 */
export function dropReasoningEcho(tags: readonly string[]): EventFilter {
  let isAfterReasoning = false;
  let buffered: TextDelta[] = [];
  return function* (event) {
    if (event.type === "prompt-progress") yield event;
    else if (event.type === "reasoning-delta") {
      isAfterReasoning = true;
      buffered = [];
      yield event;
    } else if (event.type === "text-delta" && isAfterReasoning) {
      buffered.push(event);
      const text = buffered.map((each) => each.text).join("");
      if (tags.some((tag) => tag.startsWith(text))) return;
      isAfterReasoning = false;
      yield* buffered;
      buffered = [];
    } else {
      yield* buffered;
      buffered = [];
      yield event;
    }
  };
}

/** Tags around the text of an answer. */
export interface TextTags {
  readonly start: string;
  readonly end: string;
}

/** Creates a filter that drops the tags around the text of an answer, however they are split. Other tags are text. */
export function dropTextTags({ start, end }: TextTags): EventFilter {
  let state: "before" | "inside" | "text" = "before";
  let buffered = "";
  const release = function* (ready: number): Generator<GenerationEvent> {
    if (ready > 0) yield { type: "text-delta", text: buffered.slice(0, ready) };
    buffered = buffered.slice(ready);
  };
  return function* (event) {
    if (event.type !== "text-delta") {
      const isOver = event.type === "done" || event.type === "tool-call-start";
      if (isOver && state === "inside" && buffered.trimEnd() === end) buffered = "";
      if (isOver) yield* release(buffered.length);
      yield event;
      return;
    }
    if (event.logprobs) yield { ...event, text: "" };
    buffered += event.text;
    if (state === "before") {
      const text = buffered.trimStart();
      if (text.startsWith(start)) {
        buffered = text.slice(start.length);
        state = "inside";
      } else if (!start.startsWith(text)) state = "text";
    }
    if (state === "text") yield* release(buffered.length);
    // An end tag counts only if nothing but whitespace follows.
    if (state === "inside") {
      const at = buffered.lastIndexOf(end);
      const isEnd = at >= 0 && buffered.slice(at + end.length).trim() === "";
      yield* release(isEnd ? at : buffered.length - partialTagLength(buffered, end));
    }
  };
}
