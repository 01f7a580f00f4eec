import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { WorkBudget } from "../schema-errors.ts";
import type { Gap } from "../terms/branch.ts";
import type { Expander } from "../terms/expand.ts";
import type { Conjunction } from "../terms/term.ts";
import type { TextRules } from "../text-rules.ts";

/** Context in which the parts of a schema are built. */
export interface BuildContext {
  readonly expander: Expander;
  readonly texts: TextRules;
  readonly budget: WorkBudget;
  /** True: counts and patterns are left to the check. */
  readonly isCoarse: boolean;
  /** True: objects may have undeclared properties unless the schema forbids them. */
  readonly allowsUndeclared: boolean;
  readonly reportGap: (gap: Gap) => void;
  /** Builds the values that fit all terms. */
  readonly value: (terms: Conjunction, hint: string) => Part;
}

/** Part of a grammar, before it is written as GBNF. */
export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "sequence"; readonly parts: readonly Part[] }
  | { readonly kind: "choice"; readonly parts: readonly Part[] }
  | { readonly kind: "repeat"; readonly part: Part; readonly min: number; readonly max: number }
  | { readonly kind: "rule"; readonly rule: Rule }
  /** Satisfiable part that writes itself as a term of GBNF. */
  | { readonly kind: "leaf"; readonly write: (writer: GrammarWriter) => string };

/** Named part, which may be recursive. */
export interface Rule {
  readonly hint: string;
  /** Assigned after creation, because it may refer to the rule. */
  body: Part;
}

/** Part that matches nothing. */
export const NOTHING: Part = { kind: "choice", parts: [] };

/** Part that matches the empty text. */
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

export const ruleOf = (hint: string, body: Part): Part => ({ kind: "rule", rule: { hint, body } });

/** Rules by key, which may be recursive. */
export class RuleTable {
  readonly #rules = new Map<string, Rule>();

  /** Returns the rule of a key. The first call builds its body, which may refer to the rule. */
  rule(key: string, hint: string, build: () => Part): Part {
    const known = this.#rules.get(key);
    if (known) return { kind: "rule", rule: known };
    const rule: Rule = { hint, body: NOTHING };
    this.#rules.set(key, rule);
    rule.body = build();
    return { kind: "rule", rule };
  }
}

/** Whitespace between JSON tokens: none, one space, or a line break with indentation. */
export const SPACE: Part = { kind: "leaf", write: (writer) => writer.rule("ws", SPACE_BODY) };

/** Most characters of indentation: without a limit, models may never stop indenting. */
const MAX_INDENTATION = 20;
const SPACE_BODY = `(" " | "\\n" [ \\t]{0,${MAX_INDENTATION}})?`;

/** Space after a colon. */
export const BLANK: Part = optional(text(" "));

/** Part that matches one JSON value, with optional space between its tokens. */
export function literalOf(value: unknown): Part {
  if (Array.isArray(value)) return enclosed("[", value.map(literalOf), "]");
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([name, field]) => member(name, literalOf(field)));
    return enclosed("{", members, "}");
  }
  return text(JSON.stringify(value) ?? "null");
}

/** Property of an object. */
export function member(name: string, value: Part): Part {
  return sequence(text(`${JSON.stringify(name)}:`), BLANK, value);
}

/** Array or object. */
export function enclosed(open: string, parts: readonly Part[], close: string): Part {
  const separated = parts.flatMap((part, index) => (index === 0 ? [part] : [SEPARATOR, part]));
  return sequence(text(open), SPACE, ...separated, ...(parts.length > 0 ? [SPACE] : []), text(close));
}

/** Separator of items or properties. */
export const SEPARATOR: Part = sequence(text(","), SPACE);
