import type { Piece } from "./tokens.ts";

/** Tokens that are whole characters together: almost always one. */
export interface ScoredUnit {
  readonly tokens: readonly number[];
  readonly text: string;
}

/** The units of tokens in their order; those of a character that is cut off at the end are left out. */
export function scoredUnits(pieces: readonly Piece[]): ScoredUnit[] {
  const units: ScoredUnit[] = [];
  let open: Piece[] = [];
  for (const piece of pieces) {
    open.push(piece);
    const text = wholeText(open);
    if (text === undefined) continue;
    units.push({ tokens: open.map(({ id }) => id), text });
    open = [];
  }
  return units;
}

/** Undefined while part of a character is missing. */
function wholeText(pieces: readonly Piece[]): string | undefined {
  try {
    const bytes = pieces.flatMap((piece) => [...piece.bytes]);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/**
 * A grammar in llama.cpp's GBNF that allows exactly these tokens. A character of several tokens is spelled out, because
 * such tokens do not match one by one.
 */
export function grammarOf(units: readonly ScoredUnit[]): string {
  const parts = units.map(({ tokens, text }) =>
    tokens.length === 1 ? `<[${tokens[0]}]>` : `"${Array.from(text, escaped).join("")}"`,
  );
  return `root ::= ${parts.join(" ")}`;
}

function escaped(character: string): string {
  return `\\U${character.codePointAt(0)!.toString(16).padStart(8, "0")}`;
}
