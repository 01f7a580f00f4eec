import type { JsonSchema } from "../json-schema.ts";
import type { SchemaDocument } from "../schema-document.ts";
import type { SchemaGap } from "../schema-errors.ts";
import type { TextRules } from "../text-rules.ts";
import type { Branch, ValueType, Work } from "./branch.ts";
import type { Conjunction, KeyAtom, Term } from "./term.ts";

/** Reasons of gaps. */
export const TOO_MANY = "it has too many alternatives for the grammar";
export const NOWHERE = "it points outside this schema or to nothing in it, and nothing is fetched";
export const DYNAMIC = "what it points to depends on the way to it";

/** What reading a term needs to know of everything else. */
export interface Reading {
  readonly document: SchemaDocument;
  readonly texts: TextRules;
  /** Whether certainly no value fits. */
  isEmpty(terms: Conjunction): boolean;
  /** The texts that fit, as an atom, or undefined if they are no set that is small enough. */
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

/** Reads a pattern or a format into a branch: its texts, or all others. */
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

/** The texts that fit a pattern or a format, or do not; undefined for a format that is only an annotation. */
export function textAtom(
  { texts }: Reading,
  keyword: "pattern" | "format",
  source: string,
  isMet = true,
): KeyAtom | { readonly reason: string; readonly kind: SchemaGap["kind"] } | undefined {
  const found = keyword === "pattern" ? texts.pattern(source) : texts.format(source);
  if (found === undefined || "reason" in found) return found;
  // The set of a format may have only the common ones of its texts, so what is not in it may fit all the same.
  if (!isMet && keyword === "format")
    return { reason: "what does not fit a format is not known", kind: "ignored" };
  return { id: `${isMet ? "" : "not "}${keyword} ${source}`, set: isMet ? found : texts.not(found) };
}

/** What breaks a keyword: reads that into a branch. */
export type Alternative = (branch: Branch) => void;

/** An alternative that the grammar cannot say, so that it allows everything. */
export function unsaid(reading: Reading, node: JsonSchema, keyword: string, type: ValueType): Alternative {
  const gap = gapOf(reading, node, keyword, "what does not fit it has no grammar");
  return ofType(type, (branch) => branch.leave(gap, type));
}

export function work(terms: Conjunction, owners: readonly JsonSchema[] = []): Work[] {
  return terms.map((term) => ({ ...term, owners }));
}

/** An alternative that is one term. */
export function ofTerm(term: Term, owners: readonly JsonSchema[] = []): Alternative {
  return (branch) => branch.add([{ ...term, owners }]);
}

/** An alternative that narrows the values to one type. */
export function ofType(type: ValueType, narrow: (branch: Branch) => void): Alternative {
  return (branch) => {
    branch.only([type]);
    narrow(branch);
  };
}
