import type { TextSet } from "../text/text-set.ts";

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
