import type { JsonSchema } from "../json-schema.ts";
import type { SchemaDocument } from "../schema-document.ts";
import type { TextRules, UnusableSet } from "../text-rules.ts";
import type { Branch, Gap, ValueType, Work } from "./branch.ts";
import type { Conjunction, KeyAtom, Term } from "./term.ts";

/** Context for reading terms. */
export interface Reading {
  readonly document: SchemaDocument;
  readonly texts: TextRules;
  /** True if certainly no value fits. */
  isEmpty(terms: Conjunction): boolean;
  /** Returns the texts that fit a term, or undefined if they are no set, or too large a one. */
  textsOf(term: Term): KeyAtom | undefined;
}

/** @param reason why the keyword is ignored; undefined: it is left to the check */
export function gapOf(
  { document }: Reading,
  node: JsonSchema,
  keyword: string,
  reason: string | undefined,
): Gap {
  return reason === undefined ? keyword : { path: document.pathOf(node), keyword, reason };
}

/** Leaves out the unresolved reference of a node. */
export function leaveReference(
  branch: Branch,
  reading: Reading,
  node: JsonSchema,
  { keyword, isDynamic }: { readonly keyword: string; readonly isDynamic: boolean },
): void {
  const reason = isDynamic
    ? "what it points to depends on the way to it"
    : "it points outside this schema or to nothing in it, and nothing is fetched";
  branch.leave(gapOf(reading, node, keyword, reason));
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
  if ("reason" in found) branch.leave(gapOf(reading, node, keyword, found.reason), "string");
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
): KeyAtom | UnusableSet | undefined {
  const found = keyword === "pattern" ? texts.pattern(source) : texts.format(source);
  if (found === undefined || "reason" in found) return found;
  // The set of a format may have only its common texts, so its complement may contain valid ones.
  if (!isMet && keyword === "format") return { reason: "what does not fit a format is not known" };
  return { id: `${isMet ? "" : "not "}${keyword} ${source}`, set: isMet ? found : found.not() };
}

/** Adds the constraints of an alternative to a branch. */
export type Alternative = (branch: Branch) => void;

/** Alternative that the grammar cannot express, so it allows everything. */
export function unsaid(keyword: string, type: ValueType): Alternative {
  return ofType(type, (branch) => branch.leave(keyword, type));
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
