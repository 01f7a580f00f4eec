import type { Branch, ContainsFact } from "../terms/branch.ts";
import type { Expander } from "../terms/expand.ts";
import { type Conjunction, fails, holds } from "../terms/term.ts";
import { canonicalText } from "../json-value.ts";
import {
  type BuildContext,
  choice,
  EMPTY,
  literalOf,
  NOTHING,
  optional,
  type Part,
  repeat,
  ruleOf,
  RuleTable,
  SEPARATOR,
  sequence,
  SPACE,
  text,
} from "./part.ts";

/** Largest count in the grammar: llama.cpp makes rules for each. */
const MAX_COUNT = 5000;
/** Most positions with rules of their own. */
const MAX_POSITIONS = 300;
/** Most rules for counting contained items. */
const MAX_STATES = 1200;
/** Most possible values of unique items, whose subsets are rules. */
const MAX_DISTINCT = 6;

/** Builds the arrays of a branch. */
export function buildArray(branch: Branch, context: BuildContext, hint: string): Part {
  return sequence(text("["), SPACE, new ArrayBuilder(branch, context, hint).items(), text("]"));
}

class ArrayBuilder {
  readonly #branch: Branch;
  readonly #context: BuildContext;
  readonly #hint: string;
  readonly #min: number;
  readonly #max: number;
  /** Position from which all items have the same schema. */
  readonly #tailStart: number;

  constructor(branch: Branch, context: BuildContext, hint: string) {
    this.#branch = branch;
    this.#context = context;
    this.#hint = hint;
    const { minItems, maxItems } = branch;
    const limit = context.isCoarse ? 1 : MAX_COUNT;
    this.#min = Math.min(minItems, limit);
    if (minItems > limit) context.reportGap("minItems");
    this.#max = maxItems > limit ? Infinity : maxItems;
    if (maxItems > limit && maxItems < Infinity) context.reportGap("maxItems");
    const bounds = branch.itemFacts.flatMap(({ from, to }) => [from, to]).filter(Number.isFinite);
    this.#tailStart = Math.min(Math.max(0, ...bounds), MAX_POSITIONS);
  }

  items(): Part {
    const [counted, ...others] = this.#branch.contains;
    const { reportGap } = this.#context;
    if (others.length > 0) reportGap("contains");
    if (this.#branch.isUnique && this.#max > 1) {
      const distinct = this.#distinct();
      if (distinct) return distinct;
      reportGap("uniqueItems");
    }
    if (counted && this.#canCount(counted)) return this.#counting(counted);
    if (counted) reportGap("contains");
    return this.#uncounted();
  }

  #item(index: number): Conjunction {
    const facts = this.#branch.itemFacts.filter(({ from, to }) => from <= index && index < to);
    return facts.flatMap(({ terms }) => terms);
  }

  #value(terms: Conjunction): Part {
    return this.#context.value(terms, `${this.#hint}-item`);
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
      tail = ruleOf(`${this.#hint}-rest`, tail);
    }
    return tail;
  }

  #canCount({ min, max }: ContainsFact): boolean {
    const counts = Number.isFinite(max) ? max : min;
    return !this.#context.isCoarse && (this.#positions + 1) * (counts + 1) <= MAX_STATES;
  }

  get #positions(): number {
    return Math.max(this.#tailStart, this.#min, Number.isFinite(this.#max) ? this.#max : 1);
  }

  /** Builds one rule per position and number of contained items so far. */
  #counting({ node, min, max }: ContainsFact): Part {
    const positions = this.#positions;
    const counts = Number.isFinite(max) ? max : min;
    const rules = new RuleTable();
    const other = Number.isFinite(max) ? [fails(node)] : [];
    const state = (index: number, found: number): Part =>
      rules.rule(`${index} ${found}`, `${this.#hint}-rest`, () => {
        const parts: Part[] = [];
        const next = Math.min(index + 1, positions);
        const separator = separatorBefore(index);
        if (index < this.#max) {
          const terms = this.#item(index);
          if (found < counts) {
            const chosen = this.#value([...terms, holds(node)]);
            parts.push(sequence(separator, chosen, state(next, Math.min(found + 1, counts))));
          }
          // Once enough are found and more are allowed, any item may follow.
          parts.push(sequence(separator, this.#value([...terms, ...other]), state(next, found)));
        }
        if (index >= this.#min && found >= min) parts.push(spaceBeforeEnd(index));
        return choice(parts);
      });
    return state(0, 0);
  }

  /** Builds unique items by their possible values; undefined if those are too many. */
  #distinct(): Part | undefined {
    const { isCoarse, expander } = this.#context;
    if (this.#tailStart > 0 || this.#branch.contains.length > 0 || isCoarse) return undefined;
    const literals = listedValues(this.#item(0), expander)?.map(literalOf);
    if (literals === undefined || literals.length > MAX_DISTINCT) return undefined;
    const rules = new RuleTable();
    const state = (used: number, count: number): Part =>
      rules.rule(String(used), `${this.#hint}-rest`, () => {
        const parts: Part[] = [];
        for (const [index, literal] of literals.entries()) {
          if (count >= this.#max || (used >> index) % 2 === 1) continue;
          parts.push(sequence(separatorBefore(count), literal, state(used | (1 << index), count + 1)));
        }
        if (count >= this.#min) parts.push(spaceBeforeEnd(count));
        return choice(parts);
      });
    return state(0, 0);
  }
}

/** Returns the values that fit if they can be listed; undefined otherwise. */
function listedValues(terms: Conjunction, expander: Expander): readonly unknown[] | undefined {
  const values = new Map<string, unknown>();
  for (const branch of expander.expand(terms)) {
    const isListed = [...branch.types].every((type) => type === "boolean" || type === "null");
    if (!branch.values && (!isListed || branch.gaps.length > 0)) return undefined;
    const own = branch.values ?? [
      ...(branch.types.has("boolean") ? branch.booleans : []),
      ...(branch.types.has("null") ? [null] : []),
    ];
    for (const value of own) values.set(canonicalText(value), value);
  }
  return [...values.values()];
}

/** Space before the closing bracket; in an empty array, it is part of the opening one. */
function spaceBeforeEnd(count: number): Part {
  return count === 0 ? EMPTY : SPACE;
}

/** Separator before an item; empty for the first. */
function separatorBefore(count: number): Part {
  return count === 0 ? EMPTY : SEPARATOR;
}
