import type { GenerationEvent } from "../engine/protocol/generation.ts";

/**
 * Translates the events of one answer in order, each into none, itself or several. It may hold back what depends on the next
 * event, until `done` at the latest.
 */
export type EventReader = (event: GenerationEvent) => Iterable<GenerationEvent>;

/** Passes events through readers, in order. */
export function readAll(
  events: readonly GenerationEvent[],
  readers: readonly EventReader[],
): readonly GenerationEvent[] {
  return readers.reduce((read, reader) => read.flatMap((event) => [...reader(event)]), events);
}

/**
 * Length of the longest end of `text` that is an incomplete beginning of `tag`, which must be held back because the rest of
 * the tag may follow.
 */
export function partialTagLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}

/** Drops the log-probabilities of tokens without text, such as the one that ends the generation: clients want those of text. */
export function dropEmptyTokens(): EventReader {
  return (event) => {
    if (event.type !== "text-delta" || !event.logprobs?.some(({ token }) => token === "")) return [event];
    const logprobs = event.logprobs.filter(({ token }) => token !== "");
    return event.text === "" && logprobs.length === 0 ? [] : [{ ...event, logprobs }];
  };
}

/**
 * Drops the log-probabilities of reasoning and tool calls, which the engine reports in empty text events after their pieces;
 * clients want those of the text.
 */
export function dropUnseenLogprobs(): EventReader {
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

const NOTHING = {
  usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 0, completionMs: 0 },
};

/**
 * Ends a turn where its second tool call begins, so that the rest is not generated: some models write several calls even if
 * told not to, and not every template has a grammar that prevents it. The beginning of the second call carries the usage
 * of the answer up to there.
 */
export function firstCallOnly(): EventReader {
  return (event) =>
    event.type === "tool-call-start" && event.index > 0
      ? [{ type: "done", reason: "tool_calls", ...(event.soFar ?? NOTHING) }]
      : [event];
}

/**
 * Drops what a template puts around the parts of an answer: blanks around reasoning, and the token that ends a turn.
 * @param endOfTurn that token; absent: the engine does not show it
 * @param goesOn the answer goes on with a message, whose reasoning may have begun: its first blanks count
 */
export function tidyAnswer(endOfTurn: string | undefined, goesOn: boolean): EventReader {
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
      const isBegun = goesOn || state === "reasoning";
      const shown = isBegun ? text.trimEnd() : text.trim();
      // Until there is more than blanks, those at the beginning are dropped.
      blanks = shown === "" && !isBegun ? "" : text.slice(text.trimEnd().length);
      if (shown === "") return;
      state = "reasoning";
      yield { ...event, text: shown };
    } else if (event.type === "text-delta") {
      if (state === "reasoning") state = "after";
      const text = state === "after" ? event.text.trimStart() : event.text;
      if (text !== "") state = "text";
      blanks = "";
      const shown = { ...event, text };
      if (text === "" && event.text !== "" && !event.logprobs) return;
      if (endOfTurn !== undefined && text.endsWith(endOfTurn)) last = shown;
      else yield shown;
    } else yield event;
  };
}

type TextDelta = Extract<GenerationEvent, { type: "text-delta" }>;

/**
 * Drops text that llama.cpp repeats as reasoning: within reasoning, it shows the beginning of a tag that may end it as text
 * at first. Text behind reasoning is held back as long as it may be one; if the reasoning goes on, it was.
 * @param tags that may end the reasoning
 */
export function dropReasoningEcho(tags: readonly string[]): EventReader {
  let isBehindReasoning = false;
  let held: TextDelta[] = [];
  return function* (event) {
    if (event.type === "prompt-progress") yield event;
    else if (event.type === "reasoning-delta") {
      isBehindReasoning = true;
      held = [];
      yield event;
    } else if (event.type === "text-delta" && isBehindReasoning) {
      held.push(event);
      const text = held.map((each) => each.text).join("");
      if (tags.some((tag) => tag.startsWith(text))) return;
      isBehindReasoning = false;
      yield* held;
      held = [];
    } else {
      yield* held;
      held = [];
      yield event;
    }
  };
}

/** The tags between which a model writes the text of an answer. */
export interface TextTags {
  readonly start: string;
  readonly end: string;
}

/** Drops the tags around the whole text of an answer, however they are split. Tags elsewhere are text. */
export function dropTextTags({ start, end }: TextTags): EventReader {
  let state: "before" | "inside" | "text" = "before";
  let held = "";
  const release = function* (ready: number): Generator<GenerationEvent> {
    if (ready > 0) yield { type: "text-delta", text: held.slice(0, ready) };
    held = held.slice(ready);
  };
  return function* (event) {
    if (event.type !== "text-delta") {
      const isOver = event.type === "done" || event.type === "tool-call-start";
      if (isOver && state === "inside" && held.trimEnd() === end) held = "";
      if (isOver) yield* release(held.length);
      yield event;
      return;
    }
    if (event.logprobs) yield { ...event, text: "" };
    held += event.text;
    if (state === "before") {
      const begun = held.trimStart();
      if (begun.startsWith(start)) {
        held = begun.slice(start.length);
        state = "inside";
      } else if (!start.startsWith(begun)) state = "text";
    }
    if (state === "text") yield* release(held.length);
    // The end tag is only one if nothing but blanks follows it.
    if (state === "inside") {
      const at = held.lastIndexOf(end);
      const isEnd = at >= 0 && held.slice(at + end.length).trim() === "";
      yield* release(isEnd ? at : held.length - partialTagLength(held, end));
    }
  };
}
