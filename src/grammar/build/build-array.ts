import type { Branch, ContainsFact } from "../terms/branch.ts";
import { type Conjunction, fails } from "../terms/term.ts";
import {
  choice,
  EMPTY,
  literalOf,
  NOTHING,
  optional,
  type Part,
  repeat,
  type Rule,
  ruleOf,
  SEPARATOR,
  sequence,
  SPACE,
  text,
} from "./part.ts";
import type { ValueBuilder } from "./build-value.ts";

/** Largest count in the grammar: llama.cpp makes rules for each. */
const MAX_COUNT = 5000;
/** Most positions with rules of their own. */
const MAX_POSITIONS = 300;
/** Most rules for counting contained items. */
const MAX_STATES = 1200;
/** Most possible values of unique items, whose subsets are rules. */
const MAX_DISTINCT = 6;

/** Builds the arrays of a branch. */
export function buildArray(branch: Branch, builder: ValueBuilder, hint: string): Part {
  return sequence(text("["), SPACE, new ArrayBuilder(branch, builder, hint).items(), text("]"));
}

class ArrayBuilder {
  readonly #branch: Branch;
  readonly #builder: ValueBuilder;
  readonly #hint: string;
  readonly #min: number;
  readonly #max: number;
  /** Position from which all items have the same schema. */
  readonly #tailStart: number;

  constructor(branch: Branch, builder: ValueBuilder, hint: string) {
    this.#branch = branch;
    this.#builder = builder;
    this.#hint = hint;
    const { isCoarse, reportGap } = builder.parts;
    const limit = isCoarse ? 1 : MAX_COUNT;
    const tooMany = `more than ${limit} items are not counted`;
    this.#min = Math.min(branch.minItems, limit);
    if (branch.minItems > limit)
      reportGap({ path: branch.pathOf("minItems"), keyword: "minItems", reason: tooMany, kind: "checked" });
    this.#max = branch.maxItems > limit ? Number.POSITIVE_INFINITY : branch.maxItems;
    if (branch.maxItems > limit && branch.maxItems < Number.POSITIVE_INFINITY) {
      reportGap({ path: branch.pathOf("maxItems"), keyword: "maxItems", reason: tooMany, kind: "checked" });
    }
    const bounds = branch.itemFacts.flatMap(({ from, to }) => [from, to]).filter(Number.isFinite);
    this.#tailStart = Math.min(Math.max(0, ...bounds), MAX_POSITIONS);
  }

  items(): Part {
    const [counted, ...others] = this.#branch.contains;
    const { reportGap } = this.#builder.parts;
    for (const each of others) reportGap(each.gap);
    const distinct = this.#branch.unique && this.#max > 1 ? this.#distinct() : undefined;
    if (distinct) return distinct;
    if (this.#branch.unique && this.#max > 1) reportGap(this.#branch.unique);
    if (counted && this.#canCount(counted)) return this.#counting(counted);
    if (counted) reportGap(counted.gap);
    return this.#uncounted();
  }

  #item(index: number): Conjunction {
    const facts = this.#branch.itemFacts.filter(({ from, to }) => from <= index && index < to);
    return facts.flatMap(({ terms }) => terms);
  }

  #value(terms: Conjunction): Part {
    return this.#builder.value(terms, `${this.#hint}-item`);
  }

  #uncounted(): Part {
    const rest = this.#value(this.#item(this.#tailStart));
    const [min, max] = [Math.max(0, this.#min - this.#tailStart), this.#max - this.#tailStart];
    let tail: Part;
    if (max <= 0) tail = min > 0 ? NOTHING : spaceBeforeEnd(this.#tailStart);
    else if (this.#tailStart > 0) tail = sequence(repeat(sequence(SEPARATOR, rest), min, max), SPACE);
    else {
      const some = sequence(rest, repeat(sequence(SEPARATOR, rest), Math.max(0, min - 1), max - 1), SPACE);
      tail = min === 0 ? optional(some) : some;
    }
    for (let index = this.#tailStart - 1; index >= 0; index -= 1) {
      const next =
        index < this.#max ? sequence(separatorBefore(index), this.#value(this.#item(index)), tail) : NOTHING;
      tail = index >= this.#min ? choice([next, spaceBeforeEnd(index)]) : next;
      tail = ruleOf({ hint: `${this.#hint}-rest`, body: tail });
    }
    return tail;
  }

  #canCount({ min, max, from }: ContainsFact): boolean {
    const positions = this.#positions(from);
    const counts = Number.isFinite(max) ? max : min;
    return !this.#builder.parts.isCoarse && (positions + 1) * (counts + 1) <= MAX_STATES;
  }

  #positions(from: number): number {
    return Math.max(this.#tailStart, this.#min, from, Number.isFinite(this.#max) ? this.#max : 1);
  }

  /** Builds one rule per position and number of contained items so far. */
  #counting({ from, term, min, max }: ContainsFact): Part {
    const positions = this.#positions(from);
    const counts = Number.isFinite(max) ? max : min;
    const rules = new Map<string, Rule>();
    const other = Number.isFinite(max) ? [fails(term.node)] : [];
    const state = (index: number, found: number): Part => {
      const key = `${index} ${found}`;
      const known = rules.get(key);
      if (known) return ruleOf(known);
      const rule: Rule = { hint: `${this.#hint}-rest`, body: NOTHING };
      rules.set(key, rule);
      const parts: Part[] = [];
      const next = Math.min(index + 1, positions);
      const separator = separatorBefore(index);
      if (index < this.#max) {
        const terms = this.#item(index);
        if (index >= from && found < counts) {
          const chosen = this.#value([...terms, term]);
          parts.push(sequence(separator, chosen, state(next, Math.min(found + 1, counts))));
        }
        // Once enough are found and more are allowed, any item may follow.
        parts.push(sequence(separator, this.#value([...terms, ...other]), state(next, found)));
      }
      if (index >= this.#min && found >= min) parts.push(spaceBeforeEnd(index));
      rule.body = choice(parts);
      return ruleOf(rule);
    };
    return state(0, 0);
  }

  /** Builds unique items by their possible values; undefined if those are too many. */
  #distinct(): Part | undefined {
    if (this.#tailStart > 0 || this.#branch.contains.length > 0 || this.#builder.parts.isCoarse)
      return undefined;
    const values = this.#builder.listed(this.#item(0));
    if (values === undefined || values.length > MAX_DISTINCT) return undefined;
    const literals = values.map(literalOf);
    const rules = new Map<number, Part>();
    const state = (used: number, count: number): Part => {
      const known = rules.get(used);
      if (known) return known;
      const parts: Part[] = [];
      if (count < this.#max) {
        for (const [index, literal] of literals.entries()) {
          if ((used >> index) % 2 === 1) continue;
          parts.push(sequence(separatorBefore(count), literal, state(used | (1 << index), count + 1)));
        }
      }
      if (count >= this.#min) parts.push(spaceBeforeEnd(count));
      const part = ruleOf({ hint: `${this.#hint}-rest`, body: choice(parts) });
      rules.set(used, part);
      return part;
    };
    return state(0, 0);
  }
}

/** Space before the closing bracket; in an empty array, it is part of the opening one. */
function spaceBeforeEnd(count: number): Part {
  return count === 0 ? EMPTY : SPACE;
}

/** Separator before an item; empty for the first. */
function separatorBefore(count: number): Part {
  return count === 0 ? EMPTY : SEPARATOR;
}
