import { dependentsOf, isNames, type JsonSchema, type SchemaNode, type TypeName } from "../json-schema.ts";
import { ALL_TYPES, type Branch, COUNTS, type Gap, type ValueType, type Work } from "./branch.ts";
import { gapOf, leaveReference, ofTerm, type Reading, readText, textAtom, work } from "./reading.ts";
import { ALL_KEYS, fails, holds, type KeyAtom, type Keys, keysOf, restOf } from "./term.ts";

/** Most branches of anyOf whose subsets are combined for unevaluated keywords. */
const MAX_SUBSET_BRANCHES = 4;

/** Adds the constraints of a node that must hold to a branch. */
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
  branch.narrow(readNumber(branch, node));
  for (const [minKeyword, maxKeyword] of COUNTS) {
    branch.atLeast(minKeyword, node[minKeyword]);
    branch.atMost(maxKeyword, node[maxKeyword]);
  }
  if (node.pattern !== undefined) readText(branch, reading, node, "pattern");
  if (node.format !== undefined) readText(branch, reading, node, "format");
  readObject(branch, node, owners, reading);
  readArray(branch, node, owners);
}

function readValue(branch: Branch, node: JsonSchema): void {
  if (node.type) readTypes(branch, node.type);
  const values = "const" in node ? [node.const] : node.enum;
  if (values && (branch.values === undefined || values.length < branch.values.length)) branch.values = values;
}

function readTypes(branch: Branch, names: readonly TypeName[]): void {
  if (names.includes("integer") && !names.includes("number")) branch.narrow({ isInteger: true });
  branch.only(names.map((name): ValueType => (name === "integer" ? "number" : name)));
}

function readReferences(
  branch: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): void {
  for (const reference of reading.document.references(node)) {
    if (reference.target !== undefined) branch.add(work([holds(reference.target)], owners));
    else {
      leaveReference(branch, reading, node, reference);
      // The target may have evaluated everything.
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
  if (node.anyOf !== undefined) readAnyOf(branch, node.anyOf, owners);
  if (node.oneOf !== undefined) {
    branch.choose({
      alternatives: oneOfAlternatives(branch, node, owners, reading),
      keyword: "oneOf",
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
    keyword: "if",
  });
}

function readAnyOf(branch: Branch, anyOf: readonly SchemaNode[], owners: readonly JsonSchema[]): void {
  const branches = anyOf.map(holds);
  const keyword = "anyOf";
  if (owners.length === 0) {
    branch.choose({ alternatives: branches.map((term) => ofTerm(term)), keyword });
    return;
  }
  if (branches.length > MAX_SUBSET_BRANCHES) {
    branch.leave(keyword);
    for (const owner of owners) giveUpUnevaluated(branch, owner);
    return;
  }
  // Each satisfied branch evaluates parts, so all subsets of branches are distinguished.
  const subsets: Work[][] = [];
  for (let chosen = 1; chosen < 1 << branches.length; chosen += 1) {
    subsets.push(
      work(
        branches.filter((_, index) => (chosen >> index) % 2 === 1),
        owners,
      ),
    );
  }
  branch.choose({ alternatives: subsets.map((terms) => (each) => each.add(terms)), keyword });
}

/** Leaves the unevaluated keywords of a node to the check. */
export function giveUpUnevaluated(branch: Branch, owner: JsonSchema): void {
  for (const keyword of ["unevaluatedProperties", "unevaluatedItems"] as const) {
    if (owner[keyword] === undefined || owner[keyword] === true) continue;
    branch.leave(keyword, keyword === "unevaluatedItems" ? "array" : "object");
  }
  branch.evaluate([owner], () => ({ allKeys: true, allItems: true }));
}

/** Returns one alternative per branch of a oneOf, which excludes the branches that overlap with it. */
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

/** Returns a schema for types, the same object for the same types. */
function typesNode(types: ReadonlySet<ValueType>): JsonSchema {
  const key = [...types].toSorted().join(" ");
  let node = TYPES_NODES.get(key);
  if (!node) TYPES_NODES.set(key, (node = { type: [...types] }));
  return node;
}

function readNumber({ number }: Branch, node: JsonSchema): Partial<Branch["number"]> {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity } = node;
  const { maximum = Infinity, exclusiveMaximum = Infinity, multipleOf } = node;
  return {
    minimum: Math.max(number.minimum, minimum),
    maximum: Math.min(number.maximum, maximum),
    exclusiveMinimum: Math.max(number.exclusiveMinimum, exclusiveMinimum),
    exclusiveMaximum: Math.min(number.exclusiveMaximum, exclusiveMaximum),
    ...(multipleOf !== undefined && { multipleOf: [...number.multipleOf, multipleOf] }),
  };
}

/** Declared names and patterns of a node. */
interface DeclaredKeys {
  readonly names: readonly string[];
  readonly patterns: readonly KeyAtom[];
  /** Gaps of patterns that are not in the grammar. */
  readonly gaps: readonly Gap[];
}

export function declaredKeys(node: JsonSchema, reading: Reading): DeclaredKeys {
  const patterns: KeyAtom[] = [];
  const gaps: Gap[] = [];
  for (const pattern of Object.keys(node.patternProperties ?? {})) {
    const atom = textAtom(reading, "pattern", pattern);
    if (atom === undefined) continue;
    if ("reason" in atom) gaps.push(gapOf(reading, node, "patternProperties", atom.reason));
    else patterns.push(atom);
  }
  return { names: Object.keys(node.properties ?? {}), patterns, gaps };
}

/** Adds the constraints on objects to a branch. */
function readObject(branch: Branch, node: JsonSchema, owners: readonly JsonSchema[], reading: Reading): void {
  readProperties(branch, node, owners, reading);
  readNames(branch, node, reading);
  const required = node.required ?? [];
  if (required.length > 0) branch.required = new Set([...branch.required, ...required]);
  for (const [name, needed] of dependentsOf(node)) {
    branch.choose({
      alternatives: [
        (each) => {
          if (isNames(needed)) each.required = new Set([...each.required, ...needed]);
          else {
            // Without unevaluated keywords, requiring the property makes no difference.
            if (owners.length > 0) each.require(name);
            each.add(work([holds(needed)], owners));
          }
        },
        (each) => forbidName(each, name),
      ],
      keyword: isNames(needed) ? "dependentRequired" : "dependentSchemas",
    });
  }
}

/** Forbids a property. */
export function forbidName(branch: Branch, name: string): void {
  branch.restrictKeys(keysOf([name]), [holds(false)]);
}

function readProperties(
  branch: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): void {
  const { names, patterns, gaps } = declaredKeys(node, reading);
  const evaluated: Keys[] = [];
  if (names.length > 0) {
    branch.declared = new Set([...branch.declared, ...names]);
    const facts = Object.entries(node.properties ?? {}).map(([name, value]) => ({
      keys: keysOf([name]),
      terms: [holds(value)],
    }));
    branch.restrictAll(facts);
    evaluated.push(keysOf(names));
  }
  for (const [pattern, value] of Object.entries(node.patternProperties ?? {})) {
    const atom = patterns.find(({ id }) => id === `pattern ${pattern}`);
    if (atom) branch.restrictKeys(keysOf([], [atom]), [holds(value)]);
  }
  for (const gap of gaps) branch.leave(gap, "object");
  evaluated.push(keysOf([], patterns));
  if (node.additionalProperties !== undefined) {
    if (gaps.length === 0) branch.restrictKeys(restOf(names, patterns), [holds(node.additionalProperties)]);
    else if (node.additionalProperties !== true) {
      const isChecked = typeof gaps[0] === "string";
      const reason = isChecked ? undefined : "names cannot be told apart";
      branch.leave(gapOf(reading, node, "additionalProperties", reason), "object");
    }
    branch.evaluate(owners, () => ({ allKeys: true }));
  }
  branch.evaluate(owners, ({ keys }) => ({
    keys: [...keys, ...evaluated],
    ...(gaps.length > 0 && { allKeys: true }),
  }));
}

function readNames(branch: Branch, node: JsonSchema, reading: Reading): void {
  const { propertyNames } = node;
  if (propertyNames === undefined || propertyNames === true) return;
  const forbidden = namesThatFail(propertyNames, reading);
  if (forbidden) branch.restrictKeys(forbidden, [holds(false)]);
  else branch.leave("propertyNames", "object");
}

/** Returns the names that a propertyNames forbids. */
export function namesThatFail(propertyNames: SchemaNode, reading: Reading): Keys | undefined {
  if (propertyNames === false) return ALL_KEYS;
  const atom = reading.textsOf(holds(propertyNames));
  if (atom === undefined) return undefined;
  return atom.names ? restOf(atom.names) : restOf([], [atom]);
}

/** Adds the constraints on arrays to a branch. */
function readArray(branch: Branch, node: JsonSchema, owners: readonly JsonSchema[]): void {
  const prefix = node.prefixItems ?? [];
  for (const [index, item] of prefix.entries()) branch.restrictItems(index, index + 1, [holds(item)]);
  if (node.items !== undefined) {
    branch.restrictItems(prefix.length, Number.POSITIVE_INFINITY, [holds(node.items)]);
    branch.evaluate(owners, () => ({ allItems: true }));
  }
  branch.evaluate(owners, ({ items }) => ({ items: Math.max(items, prefix.length) }));
  if (node.uniqueItems === true) branch.isUnique = true;
  if (node.contains === undefined) return;
  branch.evaluate(owners, () => ({ someItems: true }));
  const { minContains: min = 1, maxContains: max = Infinity } = node;
  if (min > 0 || max < Infinity) branch.contain(node.contains, min, max);
}
