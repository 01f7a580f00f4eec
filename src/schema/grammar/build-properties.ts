import type { SomeFact } from "../terms/branch.ts";
import type { Conjunction } from "../terms/term.ts";
import { SEPARATOR } from "./build-literal.ts";
import { choice, EMPTY, NOTHING, type Part, repeat, type Rule, ruleOf, sequence, SPACE } from "./part.ts";

/** One way in which properties are as the facts of a branch say. */
export interface Variant {
  readonly required: ReadonlySet<string>;
  readonly terms: ReadonlyMap<string, Conjunction>;
  /** A property beyond the listed ones that has to come. */
  readonly other: SomeFact | undefined;
}

/** The properties that an object can have. */
export interface ObjectParts {
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
export function buildProperties(object: ObjectParts, variant: Variant): Part {
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
