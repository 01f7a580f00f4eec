import type { JsonSchema } from "../json-schema.ts";
import type { TypeName } from "../normalize-type.ts";
import { ALL_TYPES, type Branch, type ValueType, type Work } from "./branch.ts";
import { readArray } from "./read-array.ts";
import { readObject } from "./read-object.ts";
import { DYNAMIC, gapOf, NOWHERE, ofTerm, readText, work, type Reading, TOO_MANY } from "./reading.ts";
import { fails, holds } from "./term.ts";

/** More branches of anyOf than this are not combined for unevaluated keywords: their subsets are too many. */
const MAX_SUBSET_BRANCHES = 4;

/** Reads what a node that has to hold says into a branch. */
export function readTerm(
  branch: Branch,
  node: JsonSchema,
  outer: readonly JsonSchema[],
  reading: Reading,
): void {
  let owners = outer;
  if (node.unevaluatedProperties !== undefined || node.unevaluatedItems !== undefined) {
    branch.evaluate(outer, () => ({
      ...(node.unevaluatedProperties !== undefined && { allKeys: true }),
      ...(node.unevaluatedItems !== undefined && { allItems: true }),
    }));
    owners = [...outer, node];
    branch.evaluate([node], () => ({}));
  }
  readValue(branch, node);
  readReferences(branch, node, owners, reading);
  readApplied(branch, node, owners, reading);
  readNumber(branch, node, reading.document.pathOf(node));
  readString(branch, node, reading);
  readObject(branch, node, owners, reading);
  readArray(branch, node, owners, reading);
}

function readValue(branch: Branch, node: JsonSchema): void {
  if (node.type) readTypes(branch, node.type);
  const values = "const" in node ? [node.const] : node.enum;
  if (values && (branch.values === undefined || values.length < branch.values.length)) branch.values = values;
}

function readTypes(branch: Branch, names: readonly TypeName[]): void {
  if (names.includes("integer") && !names.includes("number")) branch.narrow({ integer: true });
  branch.only(names.map((name): ValueType => (name === "integer" ? "number" : name)));
}

function readReferences(
  branch: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): void {
  for (const { keyword, target, isDynamic } of reading.document.references(node)) {
    if (target !== undefined) branch.add(work([holds(target)], owners));
    else {
      branch.leave(gapOf(reading, node, keyword, isDynamic ? DYNAMIC : NOWHERE, "ignored"));
      // It may have evaluated everything.
      branch.evaluate(owners, () => ({ allKeys: true, allItems: true }));
    }
  }
}

function readApplied(
  branch: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): void {
  branch.add(work((node.allOf ?? []).map(holds), owners));
  if (node.not !== undefined) branch.add(work([fails(node.not)]));
  if (node.anyOf !== undefined) readAnyOf(branch, node, owners, reading);
  if (node.oneOf !== undefined) {
    branch.choose({
      alternatives: oneOfAlternatives(branch, node, owners, reading),
      gap: gapOf(reading, node, "oneOf", TOO_MANY),
    });
  }
  const { if: condition, then: met = true, else: unmet = true } = node;
  if (condition === undefined) return;
  if (met === true && unmet === true && owners.length === 0) return;
  branch.choose({
    alternatives: [
      (each) => each.add(work([holds(condition), holds(met)], owners)),
      (each) => each.add([...work([fails(condition)]), ...work([holds(unmet)], owners)]),
    ],
    gap: gapOf(reading, node, "if", TOO_MANY),
  });
}

function readAnyOf(branch: Branch, node: JsonSchema, owners: readonly JsonSchema[], reading: Reading): void {
  const branches = (node.anyOf ?? []).map(holds);
  const gap = gapOf(reading, node, "anyOf", TOO_MANY);
  if (owners.length === 0) {
    branch.choose({ alternatives: branches.map((term) => ofTerm(term)), gap });
    return;
  }
  if (branches.length > MAX_SUBSET_BRANCHES) {
    branch.leave(gap);
    for (const owner of owners) giveUpUnevaluated(branch, owner, reading);
    return;
  }
  // Each branch that holds has evaluated something, so which of them hold together matters.
  const subsets: Work[][] = [];
  for (let chosen = 1; chosen < 1 << branches.length; chosen += 1) {
    subsets.push(
      work(
        branches.filter((_, index) => (chosen >> index) % 2 === 1),
        owners,
      ),
    );
  }
  branch.choose({ alternatives: subsets.map((terms) => (each) => each.add(terms)), gap });
}

/** Leaves the unevaluated keywords of a node to the check. */
export function giveUpUnevaluated(branch: Branch, owner: JsonSchema, reading: Reading): void {
  for (const keyword of ["unevaluatedProperties", "unevaluatedItems"] as const) {
    if (owner[keyword] === undefined || owner[keyword] === true) continue;
    const type = keyword === "unevaluatedItems" ? "array" : "object";
    branch.leave(gapOf(reading, owner, keyword, "what is evaluated depends on too much"), type);
  }
  branch.evaluate([owner], () => ({ allKeys: true, allItems: true }));
}

/** One alternative for each branch of a oneOf, which excludes the branches that can hold at the same time. */
function oneOfAlternatives(
  { types }: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): ((branch: Branch) => void)[] {
  const branches = node.oneOf ?? [];
  const context = types.size < ALL_TYPES.length ? [holds(typesNode(types))] : [];
  return branches.map((one, index) => {
    const others = branches.filter(
      (other, at) => at !== index && !reading.isEmpty([...context, holds(one), holds(other)]),
    );
    return (branch) => {
      branch.add(work([holds(one)], owners));
      branch.add(work(others.map(fails)));
    };
  });
}

const TYPES_NODES = new Map<string, JsonSchema>();

/** A schema for some types, the same object for the same types. */
function typesNode(types: ReadonlySet<ValueType>): JsonSchema {
  const key = [...types].toSorted().join(" ");
  let node = TYPES_NODES.get(key);
  if (!node) TYPES_NODES.set(key, (node = { type: [...types] }));
  return node;
}

function readNumber(branch: Branch, node: JsonSchema, path: string): void {
  const { number } = branch;
  branch.number = {
    ...number,
    minimum: highest(number.minimum, node.minimum),
    maximum: lowest(number.maximum, node.maximum),
    exclusiveMinimum: highest(number.exclusiveMinimum, node.exclusiveMinimum),
    exclusiveMaximum: lowest(number.exclusiveMaximum, node.exclusiveMaximum),
  };
  if (node.multipleOf === undefined) return;
  branch.narrow({ multiples: [...number.multiples, node.multipleOf] });
  branch.paths = { ...branch.paths, multipleOf: path };
}

function highest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

function lowest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

function readString(branch: Branch, node: JsonSchema, reading: Reading): void {
  branch.atLeast("minLength", node.minLength, reading.document.pathOf(node));
  branch.atMost("maxLength", node.maxLength, reading.document.pathOf(node));
  if (node.pattern !== undefined) readText(branch, reading, node, "pattern");
  if (node.format !== undefined) readText(branch, reading, node, "format");
}
