import { canonicalText, typeOf } from "../json-value.ts";
import type { JsonSchema, SchemaNode } from "../json-schema.ts";
import type { NumberBounds } from "../numbers/number-bounds.ts";
import type { IgnoredKeyword } from "../schema-errors.ts";
import type { Conjunction, KeyAtom, Keys, Term } from "./term.ts";

export type ValueType = "null" | "boolean" | "number" | "string" | "array" | "object";

export const ALL_TYPES: readonly ValueType[] = ["object", "array", "string", "number", "boolean", "null"];

/** Term to read, with the nodes whose unevaluated keywords it affects. */
export interface Work extends Term {
  readonly owners: readonly JsonSchema[];
}

/** Keyword that a grammar does not enforce: by its name if it is left to the check of the answer. */
export type Gap = string | IgnoredKeyword;

/** Keywords for limits on counts, and the type of values that they restrict. */
export const COUNTS = [
  ["minLength", "maxLength", "string"],
  ["minProperties", "maxProperties", "object"],
  ["minItems", "maxItems", "array"],
] as const;

/** Alternatives of which at least one must hold. */
interface Choice {
  readonly alternatives: readonly ((branch: Branch) => void)[];
  /** Keyword that is left to the check if the alternatives are too many. */
  readonly keyword: string;
}

/** Parts that a node with unevaluatedProperties or unevaluatedItems has evaluated. */
export interface Evaluated {
  readonly keys: readonly Keys[];
  readonly allKeys: boolean;
  readonly items: number;
  readonly allItems: boolean;
  /** True if `contains` has evaluated items at unknown positions. */
  readonly someItems: boolean;
}

export const NOTHING_EVALUATED: Evaluated = {
  keys: [],
  allKeys: false,
  items: 0,
  allItems: false,
  someItems: false,
};

interface NumberFacts extends NumberBounds {
  readonly minimum: number;
  readonly maximum: number;
  readonly exclusiveMinimum: number;
  readonly exclusiveMaximum: number;
  readonly multipleOf: readonly number[];
  /** True if the number must not be an integer, which the grammar cannot express. */
  readonly isFraction: boolean;
  readonly excluded: readonly number[];
}

interface BranchGap {
  readonly gap: Gap;
  readonly type: ValueType | undefined;
}

/** Terms for all properties with these names. */
export interface KeyFact {
  readonly keys: Keys;
  readonly terms: Conjunction;
}

/** At least one property has such a name and fits the terms. */
export interface SomeFact extends KeyFact {
  readonly keyword: string;
}

/** Terms for the items in a range of positions. */
interface ItemFact {
  readonly from: number;
  readonly to: number;
  readonly terms: Conjunction;
}

/** Limits on the number of items that satisfy a node. */
export interface ContainsFact {
  readonly node: SchemaNode;
  readonly min: number;
  readonly max: number;
}

/** Constraints on the values of one alternative of a schema, without alternatives once all work is done. */
export class Branch {
  types: ReadonlySet<ValueType> = new Set(ALL_TYPES);
  booleans: readonly boolean[] = [true, false];
  number: NumberFacts = {
    minimum: -Infinity,
    maximum: Infinity,
    exclusiveMinimum: -Infinity,
    exclusiveMaximum: Infinity,
    multipleOf: [],
    isInteger: false,
    isFraction: false,
    excluded: [],
  };
  texts: readonly KeyAtom[] = [];
  /** Excluded texts. */
  otherThan: ReadonlySet<string> = new Set();
  minLength = 0;
  maxLength = Number.POSITIVE_INFINITY;

  keyFacts: readonly KeyFact[] = [];
  /** Names of declared properties, in order. */
  declared: ReadonlySet<string> = new Set();
  required: ReadonlySet<string> = new Set();
  minProperties = 0;
  maxProperties = Number.POSITIVE_INFINITY;
  some: readonly SomeFact[] = [];

  itemFacts: readonly ItemFact[] = [];
  minItems = 0;
  maxItems = Number.POSITIVE_INFINITY;
  contains: readonly ContainsFact[] = [];
  isUnique = false;

  /** Values of an enum or a const, which decide everything else. */
  values: readonly unknown[] | undefined;

  work: readonly Work[] = [];
  choices: readonly Choice[] = [];
  read: ReadonlySet<string> = new Set();
  evaluated: ReadonlyMap<JsonSchema, Evaluated> = new Map();
  gaps: readonly BranchGap[] = [];

  /** Lists are replaced, never changed, so a shallow copy is independent. */
  copy(): Branch {
    return Object.assign(new Branch(), this);
  }

  get isDead(): boolean {
    return this.types.size === 0 || this.values?.length === 0;
  }

  die(): void {
    this.types = new Set();
  }

  only(types: readonly ValueType[]): void {
    this.types = new Set(types.filter((type) => this.types.has(type)));
  }

  without(type: ValueType): void {
    this.types = new Set([...this.types].filter((each) => each !== type));
  }

  add(terms: readonly Work[]): void {
    this.work = [...this.work, ...terms];
  }

  choose(choice: Choice): void {
    if (choice.alternatives.length === 1) choice.alternatives[0]!(this);
    else if (choice.alternatives.length === 0) this.die();
    else this.choices = [...this.choices, choice];
  }

  /** @param type of the values that the gap concerns; absent: all */
  leave(gap: Gap, type?: ValueType): void {
    this.gaps = [...this.gaps, { gap, type }];
  }

  /** Excludes values; objects and arrays with content are left to the check. */
  exclude(values: readonly unknown[], keyword: string): void {
    for (const value of values) {
      const type = typeOf(value);
      if (type === "null") this.without("null");
      else if (typeof value === "boolean") this.booleans = this.booleans.filter((each) => each !== value);
      else if (typeof value === "number") this.narrow({ excluded: [...this.number.excluded, value] });
      else if (typeof value === "string") this.otherThan = new Set([...this.otherThan, value]);
      else if (canonicalText(value).length > 2) this.leave(keyword, type);
      else this.atLeast(type === "array" ? "minItems" : "minProperties", 1);
    }
    if (this.booleans.length === 0) this.without("boolean");
  }

  atLeast(keyword: "minItems" | "minLength" | "minProperties", count = 0): void {
    this[keyword] = Math.max(this[keyword], count);
  }

  atMost(keyword: "maxItems" | "maxLength" | "maxProperties", count = Infinity): void {
    this[keyword] = Math.min(this[keyword], count);
  }

  narrow(facts: Partial<NumberFacts>): void {
    this.number = { ...this.number, ...facts };
  }

  require(name: string): void {
    this.required = new Set([...this.required, name]);
  }

  restrictKeys(keys: Keys, terms: Conjunction): void {
    this.restrictAll([{ keys, terms }]);
  }

  /** Adds several facts at once, as each addition copies the list. */
  restrictAll(facts: readonly KeyFact[]): void {
    this.keyFacts = [...this.keyFacts, ...facts];
  }

  restrictItems(from: number, to: number, terms: Conjunction): void {
    this.itemFacts = [...this.itemFacts, { from, to, terms }];
  }

  /** Limits the number of items that satisfy a node. */
  contain(node: SchemaNode, min: number, max: number): void {
    this.contains = [...this.contains, { node, min, max }];
  }

  evaluate(owners: readonly JsonSchema[], change: (evaluated: Evaluated) => Partial<Evaluated>): void {
    if (owners.length === 0) return;
    const evaluated = new Map(this.evaluated);
    for (const owner of owners) {
      const before = evaluated.get(owner) ?? NOTHING_EVALUATED;
      evaluated.set(owner, { ...before, ...change(before) });
    }
    this.evaluated = evaluated;
  }
}
