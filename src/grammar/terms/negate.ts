import { dependentsOf, isNames, type JsonSchema } from "../json-schema.ts";
import type { SchemaGap } from "../schema-errors.ts";
import { ALL_TYPES, type Branch } from "./branch.ts";
import { contain, declaredKeys, forbidName, namesThatFail } from "./read-term.ts";
import {
  type Alternative,
  DYNAMIC,
  gapOf,
  NOWHERE,
  ofTerm,
  ofType,
  type Reading,
  readText,
  TOO_MANY,
  unsaid,
  work,
} from "./reading.ts";
import { fails, holds, type Keys, keysOf, restOf, type Term } from "./term.ts";

/** Reads a node that must not hold: at least one of its keywords must be violated. */
export function negateTerm(branch: Branch, node: JsonSchema, reading: Reading): void {
  branch.choose({
    alternatives: [
      ...negateValue(node, reading),
      ...negateReferences(node, reading),
      ...negateApplied(node, reading),
      ...negateNumber(node, reading),
      ...negateString(node, reading),
      ...negateObject(node, reading),
      ...negateArray(node, reading),
    ],
    gap: gapOf(reading, node, "not", TOO_MANY),
  });
}

function negateValue(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = [];
  if (node.type) {
    const names = node.type;
    const others = ALL_TYPES.filter((type) => !names.includes(type));
    const withoutNumber = names.includes("integer") ? others.filter((type) => type !== "number") : others;
    alternatives.push((branch) => branch.only(withoutNumber));
    if (names.includes("integer") && !names.includes("number")) {
      alternatives.push(
        ofType("number", (branch) => {
          branch.narrow({ fraction: true });
          branch.leave(
            gapOf(reading, node, "type", "the grammar cannot say that a number has a fraction"),
            "number",
          );
        }),
      );
    }
  }
  const values = "const" in node ? [node.const] : node.enum;
  if (values) {
    const gap = gapOf(
      reading,
      node,
      "const" in node ? "const" : "enum",
      "what differs from it has no grammar",
    );
    alternatives.push((branch) => branch.exclude(values, gap));
  }
  return alternatives;
}

function negateReferences(node: JsonSchema, reading: Reading): Alternative[] {
  return reading.document
    .references(node)
    .map(({ keyword, target, isDynamic }) =>
      target === undefined
        ? (branch) => branch.leave(gapOf(reading, node, keyword, isDynamic ? DYNAMIC : NOWHERE, "ignored"))
        : ofTerm(fails(target)),
    );
}

function negateApplied(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = (node.allOf ?? []).map((each) => ofTerm(fails(each)));
  if (node.not !== undefined) alternatives.push(ofTerm(holds(node.not)));
  if (node.anyOf !== undefined) {
    const terms = work((node.anyOf ?? []).map(fails));
    alternatives.push((branch) => branch.add(terms));
  }
  if (node.oneOf !== undefined) {
    const branches = node.oneOf ?? [];
    const none = work(branches.map(fails));
    alternatives.push((branch) => branch.add(none));
    for (const [index, one] of branches.entries()) {
      for (const other of branches.slice(index + 1)) {
        if (reading.isEmpty([holds(one), holds(other)])) continue;
        alternatives.push((branch) => branch.add(work([holds(one), holds(other)])));
      }
    }
  }
  const { if: condition, then: met, else: unmet } = node;
  if (condition !== undefined && met !== undefined) {
    alternatives.push((branch) => branch.add(work([holds(condition), fails(met)])));
  }
  if (condition !== undefined && unmet !== undefined) {
    alternatives.push((branch) => branch.add(work([fails(condition), fails(unmet)])));
  }
  return alternatives;
}

function below(bound: JsonSchema): Alternative {
  return ofType("number", (branch) => branch.add(work([holds(bound)])));
}

function negateNumber(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = [];
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = node;
  if (minimum !== undefined) alternatives.push(below({ exclusiveMaximum: minimum }));
  if (maximum !== undefined) alternatives.push(below({ exclusiveMinimum: maximum }));
  if (exclusiveMinimum !== undefined) alternatives.push(below({ maximum: exclusiveMinimum }));
  if (exclusiveMaximum !== undefined) alternatives.push(below({ minimum: exclusiveMaximum }));
  if (multipleOf !== undefined) alternatives.push(unsaid(reading, node, "multipleOf", "number"));
  return alternatives;
}

function negateString(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = [];
  const minLength = node.minLength;
  const maxLength = node.maxLength;
  if (minLength !== undefined) {
    alternatives.push(
      ofType("string", (branch) => {
        branch.atMost("maxLength", minLength - 1, reading.document.pathOf(node));
      }),
    );
  }
  if (maxLength !== undefined) {
    alternatives.push(
      ofType("string", (branch) => {
        branch.atLeast("minLength", maxLength + 1, reading.document.pathOf(node));
      }),
    );
  }
  for (const keyword of ["pattern", "format"] as const) {
    if (node[keyword] === undefined) continue;
    // A format that is only an annotation cannot be broken.
    if (keyword === "format" && reading.texts.format(node.format ?? "") === undefined) continue;
    alternatives.push(ofType("string", (branch) => readText(branch, reading, node, keyword, false)));
  }
  return alternatives;
}

/** Alternatives that violate a keyword of objects. */
function negateObject(node: JsonSchema, reading: Reading): Alternative[] {
  return [...negateProperties(node, reading), ...negateCounts(node, reading), ...negateDependents(node)];
}

/** Alternative with a property of one of these names whose value fits the term. */
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

/** Alternatives that violate a keyword of arrays. */
function negateArray(node: JsonSchema, reading: Reading): Alternative[] {
  return [
    ...negateItems(node, reading),
    ...negateArrayNegateCounts(node, reading),
    ...negateContains(node, reading),
  ];
}

function negateItems(node: JsonSchema, reading: Reading): Alternative[] {
  const prefix = node.prefixItems ?? [];
  const alternatives = [...prefix.entries()]
    .filter(([, item]) => item !== true)
    .map(([index, item]) =>
      ofType("array", (branch) => {
        branch.atLeast("minItems", index + 1, reading.document.pathOf(node));
        branch.restrictItems(index, index + 1, [fails(item)]);
      }),
    );
  const { items } = node;
  if (items !== undefined && items !== true) {
    const gap = gapOf(reading, node, "items", "the grammar cannot tell where the items are");
    const fact = { from: prefix.length, term: fails(items), min: 1, max: Number.POSITIVE_INFINITY, gap };
    alternatives.push(
      ofType("array", (branch) => {
        branch.contains = [...branch.contains, fact];
      }),
    );
  }
  if (node.unevaluatedItems !== undefined && node.unevaluatedItems !== true) {
    alternatives.push(unsaid(reading, node, "unevaluatedItems", "array"));
  }
  if (node.uniqueItems === true) {
    alternatives.push(
      ofType("array", (branch) => {
        branch.atLeast("minItems", 2, reading.document.pathOf(node));
        branch.leave(gapOf(reading, node, "uniqueItems", "the grammar cannot compare items"), "array");
      }),
    );
  }
  return alternatives;
}

function negateArrayNegateCounts(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = [];
  const min = node.minItems;
  const max = node.maxItems;
  if (min !== undefined) {
    alternatives.push(
      ofType("array", (branch) => {
        branch.atMost("maxItems", min - 1, reading.document.pathOf(node));
      }),
    );
  }
  if (max !== undefined) {
    alternatives.push(
      ofType("array", (branch) => {
        branch.atLeast("minItems", max + 1, reading.document.pathOf(node));
      }),
    );
  }
  return alternatives;
}

function negateContains(node: JsonSchema, reading: Reading): Alternative[] {
  if (node.contains === undefined) return [];
  const alternatives: Alternative[] = [];
  const min = node.minContains ?? 1;
  const max = node.maxContains;
  if (min > 0) {
    alternatives.push(ofType("array", (branch) => contain(branch, node, reading, { min: 0, max: min - 1 })));
  }
  if (max !== undefined) {
    const counts = { min: max + 1, max: Number.POSITIVE_INFINITY };
    alternatives.push(ofType("array", (branch) => contain(branch, node, reading, counts)));
  }
  return alternatives;
}
