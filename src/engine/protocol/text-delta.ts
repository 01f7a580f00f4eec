import type { GenerationEvent } from "./generation.ts";

/** An event with the text of one token or of several consecutive tokens. */
export type TextDelta = Extract<
  GenerationEvent,
  { type: "text-delta" | "reasoning-delta" | "tool-call-delta" }
>;

/** True if an event has text. */
export function isTextDelta(event: GenerationEvent): event is TextDelta {
  return event.type === "text-delta" || event.type === "reasoning-delta" || event.type === "tool-call-delta";
}

/** Returns the text of all tokens of an event. */
export function deltaText(delta: TextDelta): string {
  return delta.type === "tool-call-delta" ? delta.arguments : delta.text;
}

/** Returns the text of each token of an event. */
export function tokenTexts(delta: TextDelta): readonly string[] {
  const text = deltaText(delta);
  return delta.ends?.map((end, at, ends) => text.slice(ends[at - 1] ?? 0, end)) ?? [text];
}

/** Returns an event with the first `count` tokens of another. */
export function firstTokens(delta: TextDelta, count: number): TextDelta {
  const first = withText(delta, deltaText(delta).slice(0, delta.ends?.[count - 1]));
  if (first.type === "text-delta" && first.logprobs) first.logprobs = first.logprobs.slice(0, count);
  return first;
}

/** Returns an event with another text. */
export function withText(delta: TextDelta, text: string): TextDelta {
  return delta.type === "tool-call-delta" ? { ...delta, arguments: text } : { ...delta, text };
}

/**
 * Appends the text of an event to the previous event, so that fewer are sent. Returns false if they cannot be joined.
 */
export function joinDeltas(last: GenerationEvent | undefined, event: GenerationEvent): boolean {
  if (last?.type === "text-delta" && event.type === "text-delta") {
    // The log probabilities of an event with empty text belong to other tokens, such as reasoning.
    if ((last.text === "") !== (event.text === "")) return false;
    last.text += event.text;
    if (event.logprobs) last.logprobs = [...(last.logprobs ?? []), ...event.logprobs];
  } else if (last?.type === "reasoning-delta" && event.type === "reasoning-delta") {
    last.text += event.text;
  } else if (last?.type === "tool-call-delta" && event.type === "tool-call-delta") {
    if (last.index !== event.index) return false;
    last.arguments += event.arguments;
  } else return false;
  if (event.soFar) last.soFar = event.soFar;
  return true;
}
