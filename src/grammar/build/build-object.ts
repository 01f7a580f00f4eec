import type { Branch, SomeFact } from "../terms/branch.ts";
import { type Conjunction, hasKey, isOpen, type KeyAtom, type Keys } from "../terms/term.ts";
import type { TextSet } from "../text/text-set.ts";
import { stringPart } from "./build-scalar.ts";
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

/** Most rules for counting properties. */
const MAX_STATES = 4000;
/** Ways to have the properties that one of several has to be like. */
const MAX_VARIANTS = 24;
/** Most names that are excluded from other properties, as the automaton of other names takes long. */
const MAX_NAMES = 200;
/** Most groups of other names with different schemas. */
const MAX_NAME_GROUPS = 24;

/** Set of undeclared names whose values have the same schema. */
interface NameGroup {
  readonly names: TextSet | undefined;
  readonly atoms: ReadonlySet<string>;
}

/** Builds the objects of a branch. */
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
  readonly #nameGroups: readonly NameGroup[];

  constructor(branch: Branch, builder: ValueBuilder, hint: string) {
    this.#branch = branch;
    this.#builder = builder;
    this.#hint = hint;
    const listed = [...branch.keyFacts, ...branch.some].flatMap(({ keys }) => Array.from(keys.names));
    this.#names = [...new Set([...branch.declared, ...branch.required, ...listed])];
    const [min, max] = this.#counts();
    this.#min = min;
    this.#max = max;
    this.#nameGroups = this.#groupNames();
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

  /** Builds a property with a listed name; undefined if it is forbidden. */
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
    const parts = this.#nameGroups.flatMap((cell) => {
      if (like && !isAmong(cell, like.keys)) return [];
      const terms = this.#branch.keyFacts
        .filter(({ keys }) => isAmong(cell, keys))
        .flatMap((fact) => fact.terms);
      if (this.#isClosed(cell, terms)) return [];
      const all = like ? [...terms, ...like.terms] : terms;
      const value = this.#builder.value(all, `${this.#hint}-value`);
      return [sequence(stringPart(cell.names, this.#builder, `${this.#hint}-name`), text(":"), BLANK, value)];
    });
    return choice(parts);
  }

  /** True if the names of a group are left out because the schema does not mention them. */
  #isClosed(cell: NameGroup, terms: Conjunction): boolean {
    const { allowsUndeclared: allowsOthers, expander } = this.#builder.parts;
    if (allowsOthers || this.#branch.declared.size === 0 || cell.atoms.size > 0) return false;
    return expander.keys.simplify(terms)?.length === 0 && this.#min <= this.#names.length;
  }

  #counts(): readonly [number, number] {
    const { minProperties, maxProperties } = this.#branch;
    const needed = Number.isFinite(maxProperties) ? maxProperties : minProperties;
    const required = this.#branch.required.size;
    const isRoomy = (this.#names.length + 1) * needed <= MAX_STATES && !this.#builder.parts.isCoarse;
    const leave = (keyword: "minProperties" | "maxProperties", reason: string): void =>
      this.#builder.parts.reportGap({ path: this.#branch.pathOf(keyword), keyword, reason, kind: "checked" });
    if (!isRoomy) {
      if (minProperties > required) leave("minProperties", "so many properties are not counted");
      if (Number.isFinite(maxProperties)) leave("maxProperties", "so many properties are not counted");
      return [0, Number.POSITIVE_INFINITY];
    }
    if (minProperties > required + 1 && this.#allowsUndeclared()) {
      leave("minProperties", "the grammar cannot tell whether a name is written twice");
    }
    return [minProperties, maxProperties];
  }

  #allowsUndeclared(): boolean {
    const { keys } = this.#builder.parts.expander;
    return !this.#branch.keyFacts.some(
      (fact) => fact.keys.isRest && fact.keys.atoms.length === 0 && keys.simplify(fact.terms) === undefined,
    );
  }

  /** Groups the undeclared names by their schemas. */
  #groupNames(): NameGroup[] {
    const { texts } = this.#builder.parts;
    const atoms = new Map<string, KeyAtom>();
    for (const { keys } of [...this.#branch.keyFacts, ...this.#branch.some]) {
      for (const atom of keys.atoms) atoms.set(atom.id, atom);
    }
    if (atoms.size === 0 && !this.#allowsUndeclared()) return [];
    const base = this.#namesBeyond();
    let cells: NameGroup[] = [{ names: base, atoms: new Set() }];
    for (const atom of atoms.values()) {
      const divided: NameGroup[] = [];
      const not = texts.not(atom.set);
      for (const cell of cells) {
        const inside = cell.names ? texts.and([cell.names, atom.set]) : atom.set;
        const outside = cell.names ? texts.and([cell.names, not]) : not;
        if (!inside.isEmpty()) divided.push({ names: inside, atoms: new Set([...cell.atoms, atom.id]) });
        if (!outside.isEmpty()) divided.push({ ...cell, names: outside });
      }
      if (divided.length > MAX_NAME_GROUPS) return this.#ungrouped(base);
      cells = divided;
    }
    return cells;
  }

  /** Returns the set of undeclared names; undefined means all names. */
  #namesBeyond(): TextSet | undefined {
    const { texts, reportGap, isCoarse } = this.#builder.parts;
    if (this.#names.length === 0) return undefined;
    if (this.#names.length <= MAX_NAMES && !isCoarse) return texts.otherThan(this.#names);
    const reason = "so many names are not distinguished from others, so one may occur twice";
    reportGap({ path: this.#branch.pathOf("properties"), keyword: "properties", reason, kind: "checked" });
    return undefined;
  }

  /** Returns one group with any values, for names that cannot be distinguished. */
  #ungrouped(names: TextSet | undefined): NameGroup[] {
    const { reportGap } = this.#builder.parts;
    const path = this.#branch.pathOf("patternProperties");
    reportGap({
      path,
      keyword: "patternProperties",
      reason: "the names are too many to tell apart",
      kind: "checked",
    });
    return [{ names, atoms: new Set(["any"]) }];
  }

  #variants(): Variant[] {
    const { reportGap } = this.#builder.parts;
    let variants: Variant[] = [{ required: this.#branch.required, terms: new Map(), other: undefined }];
    for (const fact of this.#branch.some) {
      const next = variants.flatMap((variant) => this.#likeFact(variant, fact));
      if (next.length > MAX_VARIANTS || variants.some(({ other }) => other && isOpen(fact.keys)))
        reportGap(fact.gap);
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

/** True if the undeclared names of a group are among some keys. */
function isAmong(group: NameGroup, keys: Keys): boolean {
  if (group.atoms.has("any")) return false;
  return keys.atoms.some(({ id }) => group.atoms.has(id)) !== keys.isRest;
}

/** One way in which properties are as the facts of a branch say. */
interface Variant {
  readonly required: ReadonlySet<string>;
  readonly terms: ReadonlyMap<string, Conjunction>;
  /** A property beyond the listed ones that has to come. */
  readonly other: SomeFact | undefined;
}

/** Properties that an object can have. */
interface ObjectParts {
  readonly hint: string;
  readonly names: readonly string[];
  readonly min: number;
  readonly max: number;
  /** Builds a property with a listed name; undefined if it is forbidden. */
  named(name: string, variant: Variant): Part | undefined;
  /** Properties with other names, which may have to be like one fact. */
  others(like?: SomeFact): Part;
}

/** Builds the properties of an object in order, with space after the last. */
function buildProperties(object: ObjectParts, variant: Variant): Part {
  return new PropertiesBuilder(object, variant).properties();
}

/** Builds one rule per name and number of properties so far. */
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

  /** Builds the properties from one name on. The count stops where it has no effect. */
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
    const [minimum, maximum] = [Math.max(0, min - count), max - count];
    if (maximum < 0) return NOTHING;
    const end = count === 0 ? EMPTY : SPACE;
    const { other } = this.#variant;
    // If a name occurs twice, the last value counts.
    if (other) {
      const last = this.#object.others(other);
      const [before, limit] = [Math.max(0, minimum - 1), maximum - 1];
      if (count > 0) {
        return sequence(repeat(sequence(SEPARATOR, this.#others), before, limit), SEPARATOR, last, SPACE);
      }
      return sequence(repeat(sequence(this.#others, SEPARATOR), before, limit), last, SPACE);
    }
    if (count > 0) return sequence(repeat(sequence(SEPARATOR, this.#others), minimum, maximum), SPACE);
    if (maximum === 0) return end;
    const more = repeat(sequence(SEPARATOR, this.#others), Math.max(0, minimum - 1), maximum - 1);
    const some = sequence(this.#others, more, SPACE);
    return minimum === 0 ? choice([some, EMPTY]) : some;
  }
}
