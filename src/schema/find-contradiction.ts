import { SchemaError } from "./schema-error.ts";
import type { SchemaSource } from "./schema-source.ts";
import type { Expander } from "./terms/expand.ts";
import type { Conjunction } from "./terms/term.ts";
import { isKeyword } from "./keywords.ts";
import type { JsonSchema } from "./json-schema.ts";
import { holds } from "./terms/term.ts";

/** Says where a schema that nothing fits contradicts itself, as closely as can be told. */
export function findContradiction(source: SchemaSource, terms: Conjunction, expander: Expander): SchemaError {
  const { tool, document } = source;
  const inner = innermost(terms, expander, 0);
  const node = inner.map((term) => term.node).find((each) => typeof each === "object");
  const path = node ? document.pathOf(node) : "";
  const keyword = node ? (blamedKeyword(node, expander) ?? "") : "false";
  const where = path === "" ? "the schema" : path;
  const reason = keyword ? `${keyword} contradicts the rest` : "it refers to itself without end";
  return new SchemaError(`No value can fit ${where}: ${reason}.`, { path, keyword, tool });
}

/** Follows required properties that nothing fits. */
function innermost(terms: Conjunction, expander: Expander, depth: number): Conjunction {
  if (depth > 20) return terms;
  const [first, ...others] = terms;
  if (!first || others.some(({ node }) => typeof node === "object" && Object.keys(node).length > 1))
    return terms;
  if (typeof first.node === "boolean" || !first.holds) return terms;
  const { properties, required } = first.node;
  if (typeof properties !== "object" || properties === null || !Array.isArray(required)) return terms;
  for (const [name, node] of Object.entries(properties)) {
    if (required.includes(name) && expander.isEmpty([holds(node)]))
      return innermost([holds(node)], expander, depth + 1);
  }
  return terms;
}

/** The keyword without which something would fit. */
function blamedKeyword(node: JsonSchema, expander: Expander): string | undefined {
  const names = Object.keys(node).filter(isKeyword);
  return names.toReversed().find((name) => {
    const rest = Object.fromEntries(Object.entries(node).filter(([other]) => other !== name));
    return !expander.isEmpty([holds(rest)]);
  });
}
