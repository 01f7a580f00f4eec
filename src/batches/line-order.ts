import { createHash } from "node:crypto";

/** Characters that are compared themselves; the rest of a longer first piece is told apart by a digest. */
const COMPARED = 160;

/**
 * Where a line stands among others of its model: those with the same text in front are next to each other, so that what
 * the engine has read of one prompt serves the next.
 */
export function lineOrder(pieces: readonly string[]): string {
  const [first = ""] = pieces;
  const digest = createHash("sha256").update(first).digest("base64").slice(0, 12);
  const beginning = beginningOf(pieces);
  // A lone half of a character, which a cut may leave, is no text for the database.
  return `${beginning.slice(0, COMPARED).toWellFormed().replaceAll("\u0000", " ")} ${digest}`;
}

function beginningOf(pieces: readonly string[]): string {
  let text = "";
  for (const piece of pieces) {
    text += piece.slice(0, COMPARED);
    if (text.length >= COMPARED) break;
  }
  return text;
}
