import type { JsonSchema, SchemaNode } from "../json-schema.ts";
import type { TextSet } from "../text/text-set.ts";

/** Subschema that a value must, or must not, satisfy. */
export interface Term {
  readonly node: SchemaNode;
  readonly holds: boolean;
}

/** Terms that must all hold. */
export type Conjunction = readonly Term[];

/** Term for a schema that must be satisfied. */
export const holds = (node: SchemaNode): Term => ({ node, holds: true });

/** Term for a schema that must not be satisfied. */
export const fails = (node: SchemaNode): Term => ({ node, holds: false });

/** Numbers subschemas, so that equal conjunctions have equal keys. */
export class TermKeys {
  readonly #ids = new Map<JsonSchema, number>();

  /** Removes trivial and duplicate terms; undefined if no value can fit. */
  simplify(terms: Conjunction): Conjunction | undefined {
    const kept = new Map<string, Term>();
    for (const term of terms) {
      const { node } = term;
      const constant = typeof node === "boolean" ? node : Object.keys(node).length === 0 ? true : undefined;
      if (constant === !term.holds) return undefined;
      if (constant === undefined) kept.set(this.keyOf(term), term);
    }
    const keys = [...kept.keys()].toSorted();
    // A term and its negation exclude each other.
    if (keys.some((key) => key.startsWith("+") && kept.has(`-${key.slice(1)}`))) return undefined;
    return keys.map((key) => kept.get(key)!);
  }

  keyOf({ node, holds: isMet }: Term): string {
    if (typeof node === "boolean") return String(node === isMet);
    let id = this.#ids.get(node);
    if (id === undefined) this.#ids.set(node, (id = this.#ids.size));
    return `${isMet ? "+" : "-"}${id}`;
  }

  keyOfAll(terms: Conjunction): string {
    return terms.map((term) => this.keyOf(term)).join(" ");
  }
}

/** Set of names given by an automaton. */
export interface KeyAtom {
  /** Equal for equal sets. */
  readonly id: string;
  readonly set: TextSet;
  /** Its texts, if they are few. */
  readonly names?: readonly string[];
}

/** Set of property names: the listed ones and those of the atoms, or all others. */
export interface Keys {
  readonly names: ReadonlySet<string>;
  readonly atoms: readonly KeyAtom[];
  readonly isRest: boolean;
}

const NO_NAMES: ReadonlySet<string> = new Set();

export function keysOf(names: Iterable<string>, atoms: readonly KeyAtom[] = []): Keys {
  return { names: new Set(names), atoms, isRest: false };
}

/** Returns the set of all other names. */
export function restOf(names: Iterable<string>, atoms: readonly KeyAtom[] = []): Keys {
  return { names: new Set(names), atoms, isRest: true };
}

/** Set of all names. */
export const ALL_KEYS: Keys = { names: NO_NAMES, atoms: [], isRest: true };

export function hasKey({ names, atoms, isRest }: Keys, name: string): boolean {
  return (names.has(name) || atoms.some(({ set }) => set.has(name))) !== isRest;
}

/** True if unlisted names can be among the keys. */
export function isOpen({ atoms, isRest }: Keys): boolean {
  return isRest || atoms.length > 0;
}
