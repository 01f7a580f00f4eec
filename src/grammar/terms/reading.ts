import type { JsonSchema } from "../json-schema.ts";
import type { SchemaDocument } from "../schema-document.ts";
import type { SchemaGap } from "../schema-errors.ts";
import type { TextRules } from "../text-rules.ts";
import type { Branch, ValueType, Work } from "./branch.ts";
import type { Conjunction, KeyAtom, Term } from "./term.ts";

/** Reasons of gaps. */
export const TOO_MANY = "it has too many alternatives for the grammar";
export const NOWHERE = "it points outside this schema or to nothing in it, and nothing is fetched";
export const NO_NEGATION = "what does not fit it has no grammar";
export const DYNAMIC = "what it points to depends on the way to it";

/** Context for reading terms. */
export interface Reading {
  readonly document: SchemaDocument;
  readonly texts: TextRules;
  /** True if certainly no value fits. */
  isEmpty(terms: Conjunction): boolean;
  /** Returns the texts that fit a term, or undefined if they are no set, or too large a one. */
  textsOf(term: Term): KeyAtom | undefined;
}

export function gapOf(
  { document }: Pick<Reading, "document">,
  node: JsonSchema,
  keyword: string,
  reason: string,
  kind: SchemaGap["kind"] = "checked",
): SchemaGap {
  return { path: document.pathOf(node), keyword, reason, kind };
}

/** Adds the texts of a pattern or a format, or their complement, to a branch. */
export function readText(
  branch: Branch,
  reading: Reading,
  node: JsonSchema,
  keyword: "pattern" | "format",
  isMet = true,
): void {
  const found = textAtom(reading, keyword, node[keyword] ?? "", isMet);
  if (found === undefined) return;
  if ("reason" in found) branch.leave(gapOf(reading, node, keyword, found.reason, found.kind), "string");
  else branch.texts = [...branch.texts, found];
}

/**
 * Returns the texts of a pattern or a format, or their complement; undefined for a format that is only an annotation.
 */
export function textAtom(
  { texts }: Reading,
  keyword: "pattern" | "format",
  source: string,
  isMet = true,
): KeyAtom | { readonly reason: string; readonly kind: SchemaGap["kind"] } | undefined {
  const found = keyword === "pattern" ? texts.pattern(source) : texts.format(source);
  if (found === undefined || "reason" in found) return found;
  // The set of a format may have only its common texts, so its complement may contain valid ones.
  if (!isMet && keyword === "format")
    return { reason: "what does not fit a format is not known", kind: "ignored" };
  return { id: `${isMet ? "" : "not "}${keyword} ${source}`, set: isMet ? found : texts.not(found) };
}

/** Adds the constraints of an alternative to a branch. */
export type Alternative = (branch: Branch) => void;

/** Alternative that the grammar cannot express, so it allows everything. */
export function unsaid(reading: Reading, node: JsonSchema, keyword: string, type: ValueType): Alternative {
  const gap = gapOf(reading, node, keyword, NO_NEGATION);
  return ofType(type, (branch) => branch.leave(gap, type));
}

export function work(terms: Conjunction, owners: readonly JsonSchema[] = []): Work[] {
  return terms.map((term) => ({ ...term, owners }));
}

/** Alternative of one term. */
export function ofTerm(term: Term, owners: readonly JsonSchema[] = []): Alternative {
  return (branch) => branch.add([{ ...term, owners }]);
}

/** Alternative for values of one type. */
export function ofType(type: ValueType, narrow: (branch: Branch) => void): Alternative {
  return (branch) => {
    branch.only([type]);
    narrow(branch);
  };
}
