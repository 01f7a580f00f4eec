import type { JsonSchema } from "../json-schema.ts";
import { ALL_TYPES, type Branch, COUNTS } from "./branch.ts";
import { declaredKeys, forbidName, namesThatFail } from "./read-term.ts";
import {
  type Alternative,
  leaveReference,
  ofTerm,
  ofType,
  type Reading,
  readText,
  unsaid,
  work,
} from "./reading.ts";
import { fails, holds, type Keys, keysOf, restOf, type Term } from "./term.ts";

/** Reads a node that must not hold: at least one of its keywords must be violated. */
export function negateTerm(branch: Branch, node: JsonSchema, reading: Reading): void {
  branch.choose({
    alternatives: [
      ...negateValue(node),
      ...negateReferences(node, reading),
      ...negateApplied(node, reading),
      ...negateNumber(node),
      ...negateCounts(node),
      ...negateTexts(node, reading),
      ...negateProperties(node, reading),
      ...negateItems(node),
      ...negateOthers(node),
    ],
    keyword: "not",
  });
}

function negateValue(node: JsonSchema): Alternative[] {
  const alternatives: Alternative[] = [];
  if (node.type) {
    const names = node.type;
    const others = ALL_TYPES.filter((type) => !names.includes(type));
    const withoutNumber = names.includes("integer") ? others.filter((type) => type !== "number") : others;
    alternatives.push((branch) => branch.only(withoutNumber));
    if (names.includes("integer") && !names.includes("number")) {
      alternatives.push(
        ofType("number", (branch) => {
          branch.narrow({ isFraction: true });
          branch.leave("type", "number");
        }),
      );
    }
  }
  const values = "const" in node ? [node.const] : node.enum;
  if (values) alternatives.push((branch) => branch.exclude(values, "const" in node ? "const" : "enum"));
  return alternatives;
}

function negateReferences(node: JsonSchema, reading: Reading): Alternative[] {
  return reading.document.references(node).map((reference) => {
    if (reference.target !== undefined) return ofTerm(fails(reference.target));
    return (branch) => leaveReference(branch, reading, node, reference);
  });
}

function negateApplied(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = (node.allOf ?? []).map((each) => ofTerm(fails(each)));
  if (node.not !== undefined) alternatives.push(ofTerm(holds(node.not)));
  for (const branches of [node.anyOf, node.oneOf]) {
    if (branches === undefined) continue;
    const none = work(branches.map(fails));
    alternatives.push((branch) => branch.add(none));
  }
  for (const [index, one] of (node.oneOf ?? []).entries()) {
    for (const other of node.oneOf?.slice(index + 1) ?? []) {
      if (reading.isEmpty([holds(one), holds(other)])) continue;
      alternatives.push((branch) => branch.add(work([holds(one), holds(other)])));
    }
  }
  if (node.if !== undefined && (node.then !== undefined || node.else !== undefined))
    alternatives.push((branch) => branch.leave("if"));
  return alternatives;
}

function below(bound: JsonSchema): Alternative {
  return ofType("number", (branch) => branch.add(work([holds(bound)])));
}

function negateNumber(node: JsonSchema): Alternative[] {
  const alternatives: Alternative[] = [];
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = node;
  if (minimum !== undefined) alternatives.push(below({ exclusiveMaximum: minimum }));
  if (maximum !== undefined) alternatives.push(below({ exclusiveMinimum: maximum }));
  if (exclusiveMinimum !== undefined) alternatives.push(below({ maximum: exclusiveMinimum }));
  if (exclusiveMaximum !== undefined) alternatives.push(below({ minimum: exclusiveMaximum }));
  return alternatives;
}

function negateCounts(node: JsonSchema): Alternative[] {
  return COUNTS.flatMap(([minKeyword, maxKeyword, type]) => {
    const { [minKeyword]: min, [maxKeyword]: max } = node;
    const less = min !== undefined && ofType(type, (branch) => branch.atMost(maxKeyword, min - 1));
    const more = max !== undefined && ofType(type, (branch) => branch.atLeast(minKeyword, max + 1));
    return [less, more].filter((alternative) => alternative !== false);
  });
}

function negateTexts(node: JsonSchema, reading: Reading): Alternative[] {
  const alternatives: Alternative[] = [];
  for (const keyword of ["pattern", "format"] as const) {
    if (node[keyword] === undefined) continue;
    // A format that is only an annotation cannot be broken.
    if (keyword === "format" && reading.texts.format(node.format ?? "") === undefined) continue;
    alternatives.push(ofType("string", (branch) => readText(branch, reading, node, keyword, false)));
  }
  return alternatives;
}

/** Alternative with a property of one of these names whose value fits the term. */
function some(keys: Keys, term: Term, keyword: string): Alternative {
  return ofType("object", (branch) => {
    branch.some = [...branch.some, { keys, terms: [term], keyword }];
  });
}

function negateProperties(node: JsonSchema, reading: Reading): Alternative[] {
  const { names, patterns, gaps } = declaredKeys(node, reading);
  const alternatives: Alternative[] = [];
  for (const [name, value] of Object.entries(node.properties ?? {})) {
    if (value !== true) alternatives.push(some(keysOf([name]), fails(value), "properties"));
  }
  for (const [pattern, value] of Object.entries(node.patternProperties ?? {})) {
    const atom = patterns.find(({ id }) => id === `pattern ${pattern}`);
    if (atom) alternatives.push(some(keysOf([], [atom]), fails(value), "patternProperties"));
    else alternatives.push(unsaid("patternProperties", "object"));
  }
  const { additionalProperties, propertyNames } = node;
  if (additionalProperties !== undefined && additionalProperties !== true) {
    if (gaps.length > 0) alternatives.push(unsaid("additionalProperties", "object"));
    else {
      const others = restOf(names, patterns);
      alternatives.push(some(others, fails(additionalProperties), "additionalProperties"));
    }
  }
  if (propertyNames !== undefined && propertyNames !== true) {
    const forbidden = namesThatFail(propertyNames, reading);
    if (forbidden) alternatives.push(some(forbidden, holds(true), "propertyNames"));
    else alternatives.push(unsaid("propertyNames", "object"));
  }
  for (const name of node.required ?? []) {
    alternatives.push(ofType("object", (branch) => forbidName(branch, name)));
  }
  return alternatives;
}

function negateItems({ prefixItems, contains, minContains: min = 1 }: JsonSchema): Alternative[] {
  const alternatives = [...(prefixItems ?? []).entries()]
    .filter(([, item]) => item !== true)
    .map(([index, item]) =>
      ofType("array", (branch) => {
        branch.atLeast("minItems", index + 1);
        branch.restrictItems(index, index + 1, [fails(item)]);
      }),
    );
  if (contains === undefined || min <= 0) return alternatives;
  return [...alternatives, ofType("array", (branch) => branch.contain(contains, 0, min - 1))];
}

/** Keywords whose negation is left to the check, and the type of values that they restrict. */
const UNSAID = [
  ["multipleOf", "number"],
  ["unevaluatedProperties", "object"],
  ["dependentRequired", "object"],
  ["dependentSchemas", "object"],
  ["dependencies", "object"],
  ["items", "array"],
  ["unevaluatedItems", "array"],
  ["uniqueItems", "array"],
  ["maxContains", "array"],
] as const;

function negateOthers(node: JsonSchema): Alternative[] {
  return UNSAID.filter(([keyword]) => {
    const value = node[keyword];
    // Nothing to negate: these have no effect.
    if (keyword === "maxContains" && node.contains === undefined) return false;
    if (keyword.startsWith("depend") && Object.keys(Object(value)).length === 0) return false;
    return keyword === "uniqueItems" ? value === true : value !== undefined && value !== true;
  }).map(([keyword, type]) => unsaid(keyword, type));
}
