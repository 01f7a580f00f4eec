import type { JsonSchema, SchemaNode } from "../json-schema.ts";
import type { TextSet } from "../text/text-set.ts";

/** A subschema that has to hold for a value, or must not. */
export interface Term {
  readonly node: SchemaNode;
  readonly holds: boolean;
}

/** Terms that have to hold together. */
export type Conjunction = readonly Term[];

/** A term for a part of the value. */
export const holds = (node: SchemaNode): Term => ({ node, holds: true });

/** A term that a part of the value must not fit. */
export const fails = (node: SchemaNode): Term => ({ node, holds: false });

/** Numbers subschemas, so that equal conjunctions have equal keys. */
export class TermKeys {
  readonly #ids = new Map<JsonSchema, number>();

  /** Undefined if no value can fit. Terms that say nothing are left out. */
  simplify(terms: Conjunction): Conjunction | undefined {
    const kept = new Map<string, Term>();
    for (const term of terms) {
      const { node } = term;
      const constant = typeof node === "boolean" ? node : Object.keys(node).length === 0 ? true : undefined;
      if (constant === !term.holds) return undefined;
      if (constant === undefined) kept.set(this.keyOf(term), term);
    }
    const keys = [...kept.keys()].toSorted();
    // A term and its opposite.
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

/** A set of names that has no short list. */
export interface KeyAtom {
  /** Equal for equal sets. */
  readonly id: string;
  readonly set: TextSet;
  /** Its texts, where they are few. */
  readonly names?: readonly string[];
}

/** Names of properties: those listed and those of the atoms, or all others. */
export interface Keys {
  readonly names: ReadonlySet<string>;
  readonly atoms: readonly KeyAtom[];
  readonly isRest: boolean;
}

const NO_NAMES: ReadonlySet<string> = new Set();

export function keysOf(names: Iterable<string>, atoms: readonly KeyAtom[] = []): Keys {
  return { names: new Set(names), atoms, isRest: false };
}

/** All names but these. */
export function restOf(names: Iterable<string>, atoms: readonly KeyAtom[] = []): Keys {
  return { names: new Set(names), atoms, isRest: true };
}

/** Every name. */
export const ALL_KEYS: Keys = { names: NO_NAMES, atoms: [], isRest: true };

export function hasKey({ names, atoms, isRest }: Keys, name: string): boolean {
  return (names.has(name) || atoms.some(({ set }) => set.has(name))) !== isRest;
}

/** Whether names beyond every list can be among the keys. */
export function isOpen({ atoms, isRest }: Keys): boolean {
  return isRest || atoms.length > 0;
}
