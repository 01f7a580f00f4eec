import type { JsonSchema } from "../json-schema.ts";
import { ALL_TYPES, type Branch } from "./branch.ts";
import { negateArray } from "./negate-array.ts";
import { negateObject } from "./negate-object.ts";
import {
  type Alternative,
  DYNAMIC,
  gapOf,
  NOWHERE,
  ofTerm,
  ofType,
  readText,
  type Reading,
  TOO_MANY,
  unsaid,
  work,
} from "./reading.ts";
import { fails, holds } from "./term.ts";

/** Reads a node that must not hold: at least one of its keywords has to be broken. */
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
