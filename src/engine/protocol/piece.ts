import type { GenerationEvent } from "./generation.ts";

/** An event with the text of a token, or of several in a row. */
export type TextDelta = Extract<
  GenerationEvent,
  { type: "text-delta" | "reasoning-delta" | "tool-call-delta" }
>;

/** Whether an event has text. */
export function isTextDelta(event: GenerationEvent): event is TextDelta {
  return event.type === "text-delta" || event.type === "reasoning-delta" || event.type === "tool-call-delta";
}

/** The text of all its tokens. */
export function deltaText(piece: TextDelta): string {
  return piece.type === "tool-call-delta" ? piece.arguments : piece.text;
}

/** The text of each of its tokens. */
export function tokenTexts(piece: TextDelta): readonly string[] {
  const text = deltaText(piece);
  return piece.ends?.map((end, at, ends) => text.slice(ends[at - 1] ?? 0, end)) ?? [text];
}

/** Its first tokens. */
export function firstTokens(piece: TextDelta, count: number): TextDelta {
  const end = piece.ends?.[count - 1];
  if (piece.type === "tool-call-delta") return { ...piece, arguments: piece.arguments.slice(0, end) };
  const text = piece.text.slice(0, end);
  if (piece.type === "reasoning-delta") return { ...piece, text };
  return { ...piece, text, ...(piece.logprobs && { logprobs: piece.logprobs.slice(0, count) }) };
}

/** Appends a piece of an answer to the one before it, so that fewer events are sent; returns false when that is not possible. */
export function joinDeltas(last: GenerationEvent | undefined, event: GenerationEvent): boolean {
  if (last?.type === "text-delta" && event.type === "text-delta") {
    // Empty text has the log-probabilities of something else, such as reasoning.
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
