import type { JsonSchema } from "../json-schema.ts";
import { contain } from "./read-array.ts";
import { type Alternative, unsaid, gapOf, ofType, type Reading } from "./reading.ts";
import { fails } from "./term.ts";

/** What breaks the keywords of arrays: one alternative each. */
export function negateArray(node: JsonSchema, reading: Reading): Alternative[] {
  return [...negateItems(node, reading), ...negateCounts(node, reading), ...negateContains(node, reading)];
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

function negateCounts(node: JsonSchema, reading: Reading): Alternative[] {
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
