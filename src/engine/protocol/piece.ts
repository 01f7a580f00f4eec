import type { GenerationEvent } from "./generation.ts";

/** An event with the text of a token, or of several in a row. */
export type Piece = Extract<GenerationEvent, { type: "text-delta" | "reasoning-delta" | "tool-call-delta" }>;

/** Whether an event has text. */
export function isPiece(event: GenerationEvent): event is Piece {
  return event.type === "text-delta" || event.type === "reasoning-delta" || event.type === "tool-call-delta";
}

/** The text of all its tokens. */
export function pieceText(piece: Piece): string {
  return piece.type === "tool-call-delta" ? piece.arguments : piece.text;
}

/** The text of each of its tokens. */
export function tokenTexts(piece: Piece): readonly string[] {
  const text = pieceText(piece);
  return piece.ends?.map((end, at, ends) => text.slice(ends[at - 1] ?? 0, end)) ?? [text];
}

/** Its first tokens. */
export function firstTokens(piece: Piece, count: number): Piece {
  const end = piece.ends?.[count - 1];
  if (piece.type === "tool-call-delta") return { ...piece, arguments: piece.arguments.slice(0, end) };
  const text = piece.text.slice(0, end);
  if (piece.type === "reasoning-delta") return { ...piece, text };
  return { ...piece, text, ...(piece.logprobs && { logprobs: piece.logprobs.slice(0, count) }) };
}
