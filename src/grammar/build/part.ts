import type { GrammarWriter } from "../gbnf/grammar-writer.ts";

/** A part of a grammar before it is written. */
export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "sequence"; readonly parts: readonly Part[] }
  | { readonly kind: "choice"; readonly parts: readonly Part[] }
  | { readonly kind: "repeat"; readonly part: Part; readonly min: number; readonly max: number }
  | { readonly kind: "rule"; readonly rule: Rule }
  /** Something that writes itself, and that something fits; returns a term of GBNF. */
  | { readonly kind: "leaf"; readonly write: (writer: GrammarWriter) => string };

/** A part with a name, which may refer to itself. */
export interface Rule {
  readonly hint: string;
  /** Set once, after the rule exists. */
  body: Part;
}

/** Fits nothing. */
export const NOTHING: Part = { kind: "choice", parts: [] };

/** Fits the empty text. */
export const EMPTY: Part = { kind: "sequence", parts: [] };

export const text = (value: string): Part => ({ kind: "text", text: value });

export const sequence = (...parts: readonly Part[]): Part => ({ kind: "sequence", parts });

export const choice = (parts: readonly Part[]): Part =>
  parts.length === 1 ? parts[0]! : { kind: "choice", parts };

export const optional = (part: Part): Part => repeat(part, 0, 1);

export function repeat(part: Part, min: number, max: number): Part {
  if (max < min) return NOTHING;
  if (max <= 0) return EMPTY;
  return min === 1 && max === 1 ? part : { kind: "repeat", part, min, max };
}

export const ruleOf = (rule: Rule): Part => ({ kind: "rule", rule });

/** Space between the tokens of JSON: none, one blank, or a line break and an indentation. */
export const SPACE: Part = { kind: "leaf", write: (writer) => writer.rule("ws", SPACE_BODY) };

/** Models indent by up to this many blanks; without a limit they may never stop. */
const MAX_INDENTATION = 20;
const SPACE_BODY = `(" " | "\\n" [ \\t]{0,${MAX_INDENTATION}})?`;

/** Space behind a colon. */
export const BLANK: Part = optional(text(" "));

/** One JSON value, compact or with space between its tokens. */
export function literalOf(value: unknown): Part {
  if (Array.isArray(value)) return enclosed("[", value.map(literalOf), "]");
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(([name, field]) =>
      sequence(text(`${JSON.stringify(name)}:`), BLANK, literalOf(field)),
    );
    return enclosed("{", fields, "}");
  }
  return text(JSON.stringify(value) ?? "null");
}

function enclosed(open: string, parts: readonly Part[], close: string): Part {
  const separated = parts.flatMap((part, index) => (index === 0 ? [part] : [SEPARATOR, part]));
  return sequence(text(open), SPACE, ...separated, ...(parts.length > 0 ? [SPACE] : []), text(close));
}

/** Between two items or properties. */
export const SEPARATOR: Part = sequence(text(","), SPACE);
