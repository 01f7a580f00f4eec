import type { TextSet } from "../text/text-set.ts";
import type { Branch, SomeFact } from "../terms/branch.ts";
import { hasKey, isOpen, type KeyAtom, type Keys } from "../terms/keys.ts";
import type { Conjunction } from "../terms/term.ts";
import { buildProperties, type ObjectParts, type Variant } from "./build-properties.ts";
import { textLeaf } from "./build-string.ts";
import type { ValueBuilder } from "./build-value.ts";
import { BLANK, choice, type Part, sequence, SPACE, text } from "./part.ts";

/** Rules for objects that count their properties. */
const MAX_STATES = 4000;
/** Ways to have the properties that one of several has to be like. */
const MAX_VARIANTS = 24;
/** More names make an automaton of others that takes too long. */
const MAX_NAMES = 200;
/** Sets of names that have different values. */
const MAX_CELLS = 24;

/** Names beyond the listed ones that have to fit the same. */
interface Cell {
  readonly names: TextSet | undefined;
  readonly atoms: ReadonlySet<string>;
}

/** The objects of a branch. */
export function buildObject(branch: Branch, builder: ValueBuilder, hint: string): Part {
  const object = new ObjectBuilder(branch, builder, hint);
  return sequence(text("{"), SPACE, object.properties(), text("}"));
}

class ObjectBuilder implements ObjectParts {
  readonly #branch: Branch;
  readonly #builder: ValueBuilder;
  readonly #hint: string;
  readonly #names: readonly string[];
  readonly #min: number;
  readonly #max: number;
  readonly #cells: readonly Cell[];

  constructor(branch: Branch, builder: ValueBuilder, hint: string) {
    this.#branch = branch;
    this.#builder = builder;
    this.#hint = hint;
    const listed = [...branch.keyFacts, ...branch.some].flatMap(({ keys }) => Array.from(keys.names));
    this.#names = [...new Set([...branch.declared, ...branch.required, ...listed])];
    const [min, max] = this.#counts();
    this.#min = min;
    this.#max = max;
    this.#cells = this.#findCells();
  }

  properties(): Part {
    return choice(this.#variants().map((variant) => buildProperties(this, variant)));
  }

  get names(): readonly string[] {
    return this.#names;
  }

  get min(): number {
    return this.#min;
  }

  get max(): number {
    return this.#max;
  }

  get hint(): string {
    return this.#hint;
  }

  /** A property with a listed name; undefined if it must not be there. */
  named(name: string, variant: Variant): Part | undefined {
    const { expander } = this.#builder.parts;
    const terms = [...expander.termsOfProperty(this.#branch, name), ...(variant.terms.get(name) ?? [])];
    if (expander.keys.simplify(terms) === undefined) return undefined;
    return sequence(
      text(`${JSON.stringify(name)}:`),
      BLANK,
      this.#builder.value(terms, `${this.#hint}-${name}`),
    );
  }

  /** Properties with other names, which may have to be like one fact. */
  others(like?: SomeFact): Part {
    const parts = this.#cells.flatMap((cell) => {
      if (like && !isAmong(cell, like.keys)) return [];
      const terms = this.#branch.keyFacts
        .filter(({ keys }) => isAmong(cell, keys))
        .flatMap((fact) => fact.terms);
      if (this.#isClosed(cell, terms)) return [];
      const all = like ? [...terms, ...like.terms] : terms;
      const value = this.#builder.value(all, `${this.#hint}-value`);
      return [sequence(textLeaf(cell.names, this.#builder, `${this.#hint}-name`), text(":"), BLANK, value)];
    });
    return choice(parts);
  }

  /** Whether names of a cell are left out because nobody has spoken of them. */
  #isClosed(cell: Cell, terms: Conjunction): boolean {
    const { allowsOthers, expander } = this.#builder.parts;
    if (allowsOthers || this.#branch.declared.size === 0 || cell.atoms.size > 0) return false;
    return expander.keys.simplify(terms)?.length === 0 && this.#min <= this.#names.length;
  }

  #counts(): readonly [number, number] {
    const { minProperties, maxProperties } = this.#branch;
    const needed = Number.isFinite(maxProperties) ? maxProperties : minProperties;
    const required = this.#branch.required.size;
    const isRoomy = (this.#names.length + 1) * needed <= MAX_STATES && !this.#builder.parts.isCoarse;
    const leave = (keyword: "minProperties" | "maxProperties", reason: string): void =>
      this.#builder.parts.gap({ path: this.#branch.pathOf(keyword), keyword, reason, kind: "checked" });
    if (!isRoomy) {
      if (minProperties > required) leave("minProperties", "so many properties are not counted");
      if (Number.isFinite(maxProperties)) leave("maxProperties", "so many properties are not counted");
      return [0, Number.POSITIVE_INFINITY];
    }
    if (minProperties > required + 1 && this.#allowsOthers()) {
      leave("minProperties", "the grammar cannot tell whether a name is written twice");
    }
    return [minProperties, maxProperties];
  }

  #allowsOthers(): boolean {
    const { keys } = this.#builder.parts.expander;
    return !this.#branch.keyFacts.some(
      (fact) => fact.keys.isRest && fact.keys.atoms.length === 0 && keys.simplify(fact.terms) === undefined,
    );
  }

  /** The names beyond the listed ones, divided by what they have to fit. */
  #findCells(): Cell[] {
    const { texts } = this.#builder.parts;
    const atoms = new Map<string, KeyAtom>();
    for (const { keys } of [...this.#branch.keyFacts, ...this.#branch.some]) {
      for (const atom of keys.atoms) atoms.set(atom.id, atom);
    }
    if (atoms.size === 0 && !this.#allowsOthers()) return [];
    const base = this.#namesBeyond();
    let cells: Cell[] = [{ names: base, atoms: new Set() }];
    for (const atom of atoms.values()) {
      const divided: Cell[] = [];
      const not = texts.not(atom.set);
      for (const cell of cells) {
        const inside = cell.names ? texts.and([cell.names, atom.set]) : atom.set;
        const outside = cell.names ? texts.and([cell.names, not]) : not;
        if (!inside.isEmpty()) divided.push({ names: inside, atoms: new Set([...cell.atoms, atom.id]) });
        if (!outside.isEmpty()) divided.push({ ...cell, names: outside });
      }
      if (divided.length > MAX_CELLS) return this.#undivided(base);
      cells = divided;
    }
    return cells;
  }

  /** The names that are not listed; undefined for all. */
  #namesBeyond(): TextSet | undefined {
    const { texts, gap, isCoarse } = this.#builder.parts;
    if (this.#names.length === 0) return undefined;
    if (this.#names.length <= MAX_NAMES && !isCoarse) return texts.otherThan(this.#names);
    const reason = "so many names are not told apart from others, so one may come twice";
    gap({ path: this.#branch.pathOf("properties"), keyword: "properties", reason, kind: "checked" });
    return undefined;
  }

  /** Names that cannot be told apart may have any value. */
  #undivided(names: TextSet | undefined): Cell[] {
    const { gap } = this.#builder.parts;
    const path = this.#branch.pathOf("patternProperties");
    gap({
      path,
      keyword: "patternProperties",
      reason: "the names are too many to tell apart",
      kind: "checked",
    });
    return [{ names, atoms: new Set(["any"]) }];
  }

  #variants(): Variant[] {
    const { gap } = this.#builder.parts;
    let variants: Variant[] = [{ required: this.#branch.required, terms: new Map(), other: undefined }];
    for (const fact of this.#branch.some) {
      const next = variants.flatMap((variant) => this.#likeFact(variant, fact));
      if (next.length > MAX_VARIANTS || variants.some(({ other }) => other && isOpen(fact.keys)))
        gap(fact.gap);
      else variants = next;
    }
    return variants;
  }

  #likeFact(variant: Variant, fact: SomeFact): Variant[] {
    const named: Variant[] = [];
    for (const name of this.#names.filter((each) => hasKey(fact.keys, each))) {
      const terms = new Map(variant.terms).set(name, [...(variant.terms.get(name) ?? []), ...fact.terms]);
      named.push({ ...variant, required: new Set([...variant.required, name]), terms });
    }
    return isOpen(fact.keys) ? [...named, { ...variant, other: fact }] : named;
  }
}

/** Whether the names of a cell are among some keys; they are none of the listed ones. */
function isAmong(cell: Cell, keys: Keys): boolean {
  if (cell.atoms.has("any")) return false;
  return keys.atoms.some(({ id }) => cell.atoms.has(id)) !== keys.isRest;
}
