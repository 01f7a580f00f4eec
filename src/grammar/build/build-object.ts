import type { Branch, SomeFact } from "../terms/branch.ts";
import { type Conjunction, hasKey, isOpen, type KeyAtom, type Keys } from "../terms/term.ts";
import type { TextSet } from "../text/text-set.ts";
import { stringPart } from "./build-scalar.ts";
import {
  BLANK,
  type BuildContext,
  choice,
  EMPTY,
  member,
  NOTHING,
  type Part,
  repeat,
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

/** One way in which properties are as the facts of a branch say. */
interface Variant {
  readonly required: ReadonlySet<string>;
  readonly terms: ReadonlyMap<string, Conjunction>;
  /** A property beyond the listed ones that has to come. */
  readonly other: SomeFact | undefined;
}

/** Builds the objects of a branch. */
export function buildObject(branch: Branch, context: BuildContext, hint: string): Part {
  return sequence(text("{"), SPACE, new ObjectBuilder(branch, context, hint).properties(), text("}"));
}

class ObjectBuilder {
  readonly #branch: Branch;
  readonly #context: BuildContext;
  readonly #hint: string;
  readonly #names: readonly string[];
  readonly #min: number;
  readonly #max: number;
  readonly #nameGroups: readonly NameGroup[];

  constructor(branch: Branch, context: BuildContext, hint: string) {
    this.#branch = branch;
    this.#context = context;
    this.#hint = hint;
    const listed = [...branch.keyFacts, ...branch.some].flatMap(({ keys }) => Array.from(keys.names));
    this.#names = [...new Set([...branch.declared, ...branch.required, ...listed])];
    [this.#min, this.#max] = this.#counts();
    this.#nameGroups = this.#groupNames();
  }

  properties(): Part {
    return choice(this.#variants().map((variant) => this.#ordered(variant)));
  }

  /** Builds the properties in order, with space after the last: one rule per name and number of properties so far. */
  #ordered(variant: Variant): Part {
    const named = this.#names.map((name) => this.#named(name, variant));
    const others = this.#others();
    // The count stops where it has no effect.
    const limit = Number.isFinite(this.#max) ? this.#max : Math.max(1, this.#min);
    let parts = Array.from({ length: limit + 1 }, (_, count) => this.#rest(count, others, variant.other));
    for (const [index, name] of [...this.#names.entries()].toReversed()) {
      const property = named[index];
      const after = parts;
      parts = after.map((without, count) => {
        const next = after[Math.min(count + 1, limit)] ?? NOTHING;
        const choices: Part[] = [];
        if (property && count < this.#max)
          choices.push(sequence(count === 0 ? EMPTY : SEPARATOR, property, next));
        if (!variant.required.has(name)) choices.push(without);
        return ruleOf(`${this.#hint}-rest`, choice(choices));
      });
    }
    return parts[0] ?? NOTHING;
  }

  /** Builds the properties beyond the listed ones. */
  #rest(count: number, others: Part, other: SomeFact | undefined): Part {
    const [minimum, maximum] = [Math.max(0, this.#min - count), this.#max - count];
    if (maximum < 0) return NOTHING;
    // If a name occurs twice, the last value counts.
    if (other) {
      const last = this.#others(other);
      const [before, limit] = [Math.max(0, minimum - 1), maximum - 1];
      if (count > 0)
        return sequence(repeat(sequence(SEPARATOR, others), before, limit), SEPARATOR, last, SPACE);
      return sequence(repeat(sequence(others, SEPARATOR), before, limit), last, SPACE);
    }
    if (count > 0) return sequence(repeat(sequence(SEPARATOR, others), minimum, maximum), SPACE);
    if (maximum === 0) return EMPTY;
    const more = repeat(sequence(SEPARATOR, others), Math.max(0, minimum - 1), maximum - 1);
    const some = sequence(others, more, SPACE);
    return minimum === 0 ? choice([some, EMPTY]) : some;
  }

  /** Builds a property with a listed name; undefined if it is forbidden. */
  #named(name: string, variant: Variant): Part | undefined {
    const { expander, value } = this.#context;
    const terms = [...expander.termsOfProperty(this.#branch, name), ...(variant.terms.get(name) ?? [])];
    if (expander.keys.simplify(terms) === undefined) return undefined;
    return member(name, value(terms, `${this.#hint}-${name}`));
  }

  /** Builds a property with another name, which may have to be like one fact. */
  #others(like?: SomeFact): Part {
    const parts = this.#nameGroups.flatMap((cell) => {
      if (like && !isAmong(cell, like.keys)) return [];
      const terms = this.#branch.keyFacts
        .filter(({ keys }) => isAmong(cell, keys))
        .flatMap((fact) => fact.terms);
      if (this.#isClosed(cell, terms)) return [];
      const all = like ? [...terms, ...like.terms] : terms;
      const value = this.#context.value(all, `${this.#hint}-value`);
      return [sequence(stringPart(cell.names, `${this.#hint}-name`), text(":"), BLANK, value)];
    });
    return choice(parts);
  }

  /** True if the names of a group are left out because the schema does not mention them. */
  #isClosed(cell: NameGroup, terms: Conjunction): boolean {
    const { allowsUndeclared, expander } = this.#context;
    if (allowsUndeclared || this.#branch.declared.size === 0 || cell.atoms.size > 0) return false;
    return expander.keys.simplify(terms)?.length === 0 && this.#min <= this.#names.length;
  }

  /** Limits on the number of properties, as far as the grammar counts them. */
  #counts(): [min: number, max: number] {
    const { minProperties, maxProperties } = this.#branch;
    const { reportGap, isCoarse } = this.#context;
    const needed = Number.isFinite(maxProperties) ? maxProperties : minProperties;
    const required = this.#branch.required.size;
    if (isCoarse || (this.#names.length + 1) * needed > MAX_STATES) {
      if (minProperties > required) reportGap("minProperties");
      if (Number.isFinite(maxProperties)) reportGap("maxProperties");
      return [0, Number.POSITIVE_INFINITY];
    }
    // The grammar cannot tell whether a name is written twice.
    if (minProperties > required + 1 && this.#allowsUndeclared()) reportGap("minProperties");
    return [minProperties, maxProperties];
  }

  #allowsUndeclared(): boolean {
    const { keys } = this.#context.expander;
    return !this.#branch.keyFacts.some(
      (fact) => fact.keys.isRest && fact.keys.atoms.length === 0 && keys.simplify(fact.terms) === undefined,
    );
  }

  /** Groups the undeclared names by their schemas. */
  #groupNames(): NameGroup[] {
    const atoms = new Map<string, KeyAtom>();
    for (const { keys } of [...this.#branch.keyFacts, ...this.#branch.some]) {
      for (const atom of keys.atoms) atoms.set(atom.id, atom);
    }
    if (atoms.size === 0 && !this.#allowsUndeclared()) return [];
    const base = this.#namesBeyond();
    let cells: NameGroup[] = [{ names: base, atoms: new Set() }];
    for (const atom of atoms.values()) {
      const divided: NameGroup[] = [];
      const not = atom.set.not();
      for (const cell of cells) {
        const inside = cell.names ? cell.names.and(atom.set) : atom.set;
        const outside = cell.names ? cell.names.and(not) : not;
        if (!inside.isEmpty()) divided.push({ names: inside, atoms: new Set([...cell.atoms, atom.id]) });
        if (!outside.isEmpty()) divided.push({ ...cell, names: outside });
      }
      if (divided.length > MAX_NAME_GROUPS) {
        // One group of any values, as the names cannot be distinguished.
        this.#context.reportGap("patternProperties");
        return [{ names: base, atoms: new Set(["any"]) }];
      }
      cells = divided;
    }
    return cells;
  }

  /** Returns the set of undeclared names; undefined means all names. */
  #namesBeyond(): TextSet | undefined {
    const { texts, reportGap, isCoarse } = this.#context;
    if (this.#names.length === 0) return undefined;
    if (this.#names.length <= MAX_NAMES && !isCoarse) return texts.otherThan(this.#names);
    // One of so many names may occur twice.
    reportGap("properties");
    return undefined;
  }

  #variants(): Variant[] {
    let variants: Variant[] = [{ required: this.#branch.required, terms: new Map(), other: undefined }];
    for (const fact of this.#branch.some) {
      const next = variants.flatMap((variant) => this.#likeFact(variant, fact));
      if (next.length > MAX_VARIANTS || variants.some(({ other }) => other && isOpen(fact.keys)))
        this.#context.reportGap(fact.keyword);
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
