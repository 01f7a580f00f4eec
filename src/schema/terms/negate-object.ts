import { dependentsOf, isNames, type JsonSchema } from "../json-schema.ts";
import type { SchemaGap } from "../schema-gap.ts";
import type { Keys } from "./keys.ts";
import { keysOf, restOf } from "./keys.ts";
import { declaredKeys, forbidName, namesThatFail } from "./read-object.ts";
import { type Alternative, unsaid, gapOf, ofType, work, type Reading } from "./reading.ts";
import { fails, holds, type Term } from "./term.ts";

/** What breaks the keywords of objects: one alternative each. */
export function negateObject(node: JsonSchema, reading: Reading): Alternative[] {
  return [...negateProperties(node, reading), ...negateCounts(node, reading), ...negateDependents(node)];
}

/** There is a property with one of these names whose value fits the term. */
function some(keys: Keys, term: Term, gap: SchemaGap): Alternative {
  return ofType("object", (branch) => {
    branch.some = [...branch.some, { keys, terms: [term], gap }];
  });
}

function negateProperties(node: JsonSchema, reading: Reading): Alternative[] {
  const { names, patterns, gaps } = declaredKeys(node, reading);
  const alternatives: Alternative[] = [];
  const gap = (keyword: string): SchemaGap =>
    gapOf(reading, node, keyword, "what does not fit it has too many forms");
  for (const [name, value] of Object.entries(node.properties ?? {})) {
    if (value !== true) alternatives.push(some(keysOf([name]), fails(value), gap("properties")));
  }
  for (const [pattern, value] of Object.entries(node.patternProperties ?? {})) {
    const atom = patterns.find(({ id }) => id === `pattern ${pattern}`);
    if (atom) alternatives.push(some(keysOf([], [atom]), fails(value), gap("patternProperties")));
    else alternatives.push(unsaid(reading, node, "patternProperties", "object"));
  }
  const { additionalProperties, propertyNames, unevaluatedProperties } = node;
  if (additionalProperties !== undefined && additionalProperties !== true) {
    if (gaps.length > 0) alternatives.push(unsaid(reading, node, "additionalProperties", "object"));
    else
      alternatives.push(
        some(restOf(names, patterns), fails(additionalProperties), gap("additionalProperties")),
      );
  }
  if (propertyNames !== undefined && propertyNames !== true) {
    const forbidden = namesThatFail(propertyNames, reading);
    if (forbidden) alternatives.push(some(forbidden, holds(true), gap("propertyNames")));
    else alternatives.push(unsaid(reading, node, "propertyNames", "object"));
  }
  if (unevaluatedProperties !== undefined && unevaluatedProperties !== true) {
    alternatives.push(unsaid(reading, node, "unevaluatedProperties", "object"));
  }
  for (const name of node.required ?? []) {
    alternatives.push(ofType("object", (branch) => forbidName(branch, name)));
  }
  return alternatives;
}

function negateCounts(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = [];
  const min = node.minProperties;
  const max = node.maxProperties;
  if (min !== undefined) {
    alternatives.push(
      ofType("object", (branch) => {
        branch.atMost("maxProperties", min - 1, reading.document.pathOf(node));
      }),
    );
  }
  if (max !== undefined) {
    alternatives.push(
      ofType("object", (branch) => {
        branch.atLeast("minProperties", max + 1, reading.document.pathOf(node));
      }),
    );
  }
  return alternatives;
}

function negateDependents(node: JsonSchema): Alternative[] {
  const alternatives: Alternative[] = [];
  for (const [name, needed] of dependentsOf(node)) {
    if (!isNames(needed)) {
      alternatives.push(
        ofType("object", (branch) => {
          branch.require(name);
          branch.add(work([fails(needed)]));
        }),
      );
      continue;
    }
    for (const other of needed) {
      alternatives.push(
        ofType("object", (branch) => {
          branch.require(name);
          forbidName(branch, other);
        }),
      );
    }
  }
  return alternatives;
}
