import { dependentsOf, isNames, type JsonSchema, type SchemaNode } from "../json-schema.ts";
import type { Branch } from "./branch.ts";
import { ALL_KEYS, keysOf, restOf, type KeyAtom, type Keys } from "./keys.ts";
import { TOO_MANY, gapOf, textAtom, work, type Reading } from "./reading.ts";
import { holds } from "./term.ts";

/** The declared names and patterns of a node. */
interface DeclaredKeys {
  readonly names: readonly string[];
  readonly patterns: readonly KeyAtom[];
  /** The gaps of patterns that the grammar cannot tell apart from other names. */
  readonly gaps: readonly ReturnType<typeof gapOf>[];
}

export function declaredKeys(node: JsonSchema, reading: Reading): DeclaredKeys {
  const patterns: KeyAtom[] = [];
  const gaps: ReturnType<typeof gapOf>[] = [];
  for (const [pattern] of Object.entries(node.patternProperties ?? {})) {
    const atom = textAtom(reading, "pattern", pattern);
    if (atom === undefined) continue;
    if ("reason" in atom) gaps.push(gapOf(reading, node, "patternProperties", atom.reason, atom.kind));
    else patterns.push(atom);
  }
  return { names: Object.entries(node.properties ?? {}).map(([name]) => name), patterns, gaps };
}

/** Reads what a node says of objects into a branch. */
export function readObject(
  branch: Branch,
  node: JsonSchema,
  owners: readonly JsonSchema[],
  reading: Reading,
): void {
  readProperties(branch, node, owners, reading);
  readNames(branch, node, reading);
  const required = node.required ?? [];
  if (required.length > 0) branch.required = new Set([...branch.required, ...required]);
  branch.atLeast("minProperties", node.minProperties, reading.document.pathOf(node));
  branch.atMost("maxProperties", node.maxProperties, reading.document.pathOf(node));
  for (const [name, needed] of dependentsOf(node)) {
    branch.choose({
      alternatives: [
        (each) => {
          if (isNames(needed)) each.required = new Set([...each.required, ...needed]);
          else {
            // Without unevaluated keywords the property may also be absent, which allows no more.
            if (owners.length > 0) each.require(name);
            each.add(work([holds(needed)], owners));
          }
        },
        (each) => forbidName(each, name),
      ],
      gap: gapOf(reading, node, isNames(needed) ? "dependentRequired" : "dependentSchemas", TOO_MANY),
    });
  }
}

/** Objects may not have this property. */
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
      branch.leave(
        gapOf(reading, node, "additionalProperties", "names cannot be told apart", gaps[0]!.kind),
        "object",
      );
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
  else branch.leave(gapOf(reading, node, "propertyNames", "the names are too many to tell apart"), "object");
}

/** The names that do not fit a propertyNames. */
export function namesThatFail(propertyNames: SchemaNode, reading: Reading): Keys | undefined {
  if (propertyNames === false) return ALL_KEYS;
  const atom = reading.textsOf(holds(propertyNames));
  if (atom === undefined) return undefined;
  return atom.names ? restOf(atom.names) : restOf([], [atom]);
}
