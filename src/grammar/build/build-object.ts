import type { Branch, SomeFact } from "../terms/branch.ts";
import { type Conjunction, hasKey, isOpen, type KeyAtom, type Keys } from "../terms/term.ts";
import type { TextSet } from "../text/text-set.ts";
import { textLeaf } from "./build-scalar.ts";
import type { ValueBuilder } from "./build-value.ts";
import {
  BLANK,
  choice,
  EMPTY,
  NOTHING,
  type Part,
  repeat,
  type Rule,
  ruleOf,
  SEPARATOR,
  sequence,
  SPACE,
  text,
} from "./part.ts";

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

/** One way in which properties are as the facts of a branch say. */
interface Variant {
  readonly required: ReadonlySet<string>;
  readonly terms: ReadonlyMap<string, Conjunction>;
  /** A property beyond the listed ones that has to come. */
  readonly other: SomeFact | undefined;
}

/** The properties that an object can have. */
interface ObjectParts {
  readonly hint: string;
  readonly names: readonly string[];
  readonly min: number;
  readonly max: number;
  /** A property with a listed name; undefined if it must not be there. */
  named(name: string, variant: Variant): Part | undefined;
  /** Properties with other names, which may have to be like one fact. */
  others(like?: SomeFact): Part;
}

/** The properties of an object in their order, with space behind the last. */
function buildProperties(object: ObjectParts, variant: Variant): Part {
  return new PropertiesBuilder(object, variant).properties();
}

/** One rule for each name and number of properties so far. */
class PropertiesBuilder {
  readonly #object: ObjectParts;
  readonly #variant: Variant;
  readonly #named: ReadonlyMap<string, Part | undefined>;
  readonly #others: Part;
  readonly #rules = new Map<string, Rule>();

  constructor(object: ObjectParts, variant: Variant) {
    this.#object = object;
    this.#variant = variant;
    this.#named = new Map(object.names.map((name) => [name, object.named(name, variant)]));
    this.#others = object.others();
  }

  properties(): Part {
    return this.#from(0, 0);
  }

  /** The properties from one name on. Beyond what matters, the count stays. */
  #from(index: number, count: number): Part {
    const { names, min, max } = this.#object;
    const name = names[index];
    if (name === undefined) return this.#rest(count);
    const key = `${index} ${count}`;
    const known = this.#rules.get(key);
    if (known) return ruleOf(known);
    const rule: Rule = { hint: `${this.#object.hint}-rest`, body: NOTHING };
    this.#rules.set(key, rule);
    const property = this.#named.get(name);
    const limit = Number.isFinite(max) ? max : Math.max(1, min);
    const parts: Part[] = [];
    if (property && count < max) {
      const next = this.#from(index + 1, Math.min(count + 1, limit));
      parts.push(sequence(count === 0 ? EMPTY : SEPARATOR, property, next));
    }
    if (!this.#variant.required.has(name)) parts.push(this.#from(index + 1, count));
    rule.body = choice(parts);
    return ruleOf(rule);
  }

  #rest(count: number): Part {
    const { min, max } = this.#object;
    const [least, most] = [Math.max(0, min - count), max - count];
    if (most < 0) return NOTHING;
    const end = count === 0 ? EMPTY : SPACE;
    const { other } = this.#variant;
    // Where a name comes twice, the last counts.
    if (other) {
      const last = this.#object.others(other);
      const [before, limit] = [Math.max(0, least - 1), most - 1];
      if (count > 0) {
        return sequence(repeat(sequence(SEPARATOR, this.#others), before, limit), SEPARATOR, last, SPACE);
      }
      return sequence(repeat(sequence(this.#others, SEPARATOR), before, limit), last, SPACE);
    }
    if (count > 0) return sequence(repeat(sequence(SEPARATOR, this.#others), least, most), SPACE);
    if (most === 0) return end;
    const more = repeat(sequence(SEPARATOR, this.#others), Math.max(0, least - 1), most - 1);
    const some = sequence(this.#others, more, SPACE);
    return least === 0 ? choice([some, EMPTY]) : some;
  }
}
