import type { JsonSchema } from "../json-schema.ts";
import type { Branch } from "./branch.ts";
import { gapOf, type Reading } from "./reading.ts";
import { holds } from "./term.ts";

/** Reads what a node says of arrays into a branch. */
export function readArray(
  branch: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): void {
  const prefix = node.prefixItems ?? [];
  for (const [index, item] of prefix.entries()) branch.restrictItems(index, index + 1, [holds(item)]);
  if (node.items !== undefined) {
    branch.restrictItems(prefix.length, Number.POSITIVE_INFINITY, [holds(node.items)]);
    branch.evaluate(owners, () => ({ allItems: true }));
  }
  branch.evaluate(owners, ({ items }) => ({ items: Math.max(items, prefix.length) }));
  branch.atLeast("minItems", node.minItems, reading.document.pathOf(node));
  branch.atMost("maxItems", node.maxItems, reading.document.pathOf(node));
  if (node.uniqueItems === true) {
    branch.unique ??= gapOf(reading, node, "uniqueItems", "the grammar cannot compare items");
  }
  if (node.contains === undefined) return;
  branch.evaluate(owners, () => ({ someItems: true }));
  const min = node.minContains ?? 1;
  const max = node.maxContains ?? Number.POSITIVE_INFINITY;
  contain(branch, node, reading, { min, max });
}

/** Counts the items that fit what a node's `contains` says. */
export function contain(
  branch: Branch,
  node: JsonSchema,
  reading: Reading,
  { min, max }: { readonly min: number; readonly max: number },
): void {
  if (node.contains === undefined || (min <= 0 && max === Number.POSITIVE_INFINITY)) return;
  const gap = gapOf(reading, node, "contains", "the grammar cannot tell where the items are");
  branch.contains = [...branch.contains, { from: 0, term: holds(node.contains), min, max, gap }];
}
