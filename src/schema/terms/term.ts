import type { JsonSchema, SchemaNode } from "../json-schema.ts";

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
