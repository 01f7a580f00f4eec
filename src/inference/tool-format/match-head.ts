/** The beginning of a call, piece by piece: literal text, the name of a tool, or an id of letters and digits. */
export type Head = readonly string[];

type HeadMatch =
  /** It is not one. */
  | { readonly kind: "none" }
  /** It may become one. */
  | { readonly kind: "begun" }
  /** @param length what of the text it takes */
  | { readonly kind: "whole"; readonly length: number; readonly name: string };

const NONE: HeadMatch = { kind: "none" };
const BEGUN: HeadMatch = { kind: "begun" };

/** Whether a text begins with one of the heads. Blanks between the characters of literal text do not count. */
export function matchHead(text: string, heads: readonly Head[], names: readonly string[]): HeadMatch {
  let found = NONE;
  for (const name of names) {
    for (const head of heads) {
      const match = matchPieces(text, head, name);
      if (match.kind === "whole") return match;
      if (match.kind === "begun") found = match;
    }
  }
  return found;
}

function matchPieces(text: string, head: Head, name: string): HeadMatch {
  let at = 0;
  for (const piece of head) {
    if (piece === "ID") {
      while (at < text.length && /[A-Za-z0-9]/.test(text[at]!)) at += 1;
      if (at >= text.length) return BEGUN;
    } else {
      const end = matchLiteral(text, at, piece === "NAME" ? name : piece);
      if (typeof end !== "number") return end;
      at = end;
    }
  }
  return { kind: "whole", length: at, name };
}

/** Where the literal text ends. */
function matchLiteral(text: string, start: number, literal: string): number | HeadMatch {
  let at = start;
  for (const character of literal) {
    while (at < text.length && isBlank(text[at]!)) at += 1;
    if (at >= text.length) return BEGUN;
    if (text[at] !== character) return NONE;
    at += 1;
  }
  return at;
}

function isBlank(character: string): boolean {
  return character.trim() === "";
}
