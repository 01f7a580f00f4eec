import { canonicalText, typeOf } from "../json-value.ts";
import type { JsonSchema } from "../json-schema.ts";
import type { SchemaGap } from "../schema-errors.ts";
import type { Conjunction, KeyAtom, Keys, Term } from "./term.ts";

export type ValueType = "null" | "boolean" | "number" | "string" | "array" | "object";

export const ALL_TYPES: readonly ValueType[] = ["object", "array", "string", "number", "boolean", "null"];

/** Term to read, with the nodes whose unevaluated keywords it affects. */
export interface Work extends Term {
  readonly owners: readonly JsonSchema[];
}

/** Alternatives of which at least one must hold. */
interface Choice {
  readonly alternatives: readonly ((branch: Branch) => void)[];
  /** Keyword that is not enforced if the alternatives are too many. */
  readonly gap: SchemaGap;
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

export interface NumberFacts {
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly exclusiveMaximum?: number | undefined;
  readonly integer: boolean;
  /** True if the number must not be an integer, which the grammar cannot express. */
  readonly fraction: boolean;
  readonly multiples: readonly number[];
  readonly excluded: readonly number[];
}

interface BranchGap {
  readonly gap: SchemaGap;
  readonly type: ValueType | undefined;
}

/** Terms for all properties with these names. */
export interface KeyFact {
  readonly keys: Keys;
  readonly terms: Conjunction;
}

/** At least one property has such a name and fits the terms. */
export interface SomeFact extends KeyFact {
  readonly gap: SchemaGap;
}

/** Terms for the items in a range of positions. */
interface ItemFact {
  readonly from: number;
  readonly to: number;
  readonly terms: Conjunction;
}

export interface ContainsFact {
  readonly from: number;
  readonly term: Term;
  readonly min: number;
  readonly max: number;
  readonly gap: SchemaGap;
}

/** Constraints on the values of one alternative of a schema, without alternatives once all work is done. */
export class Branch {
  types: ReadonlySet<ValueType> = new Set(ALL_TYPES);
  booleans: readonly boolean[] = [true, false];
  number: NumberFacts = { integer: false, fraction: false, multiples: [], excluded: [] };
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
  unique: SchemaGap | undefined;

  /** Paths of the nodes that set bounds, by keyword. */
  paths: Readonly<Record<string, string>> = {};

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
  leave(gap: SchemaGap, type?: ValueType): void {
    this.gaps = [...this.gaps, { gap, type }];
  }

  /** Excludes values; objects and arrays with content are left to the check. */
  exclude(values: readonly unknown[], gap: SchemaGap): void {
    for (const value of values) {
      const type = typeOf(value);
      if (type === "null") this.without("null");
      else if (typeof value === "boolean") this.booleans = this.booleans.filter((each) => each !== value);
      else if (typeof value === "number") this.narrow({ excluded: [...this.number.excluded, value] });
      else if (typeof value === "string") this.otherThan = new Set([...this.otherThan, value]);
      else if (canonicalText(value).length > 2) this.leave(gap, type);
      else if (type === "array") this.minItems = Math.max(1, this.minItems);
      else this.minProperties = Math.max(1, this.minProperties);
    }
    if (this.booleans.length === 0) this.without("boolean");
  }

  /** Path of the node that set a bound. */
  pathOf(keyword: string): string {
    return this.paths[keyword] ?? "";
  }

  atLeast(keyword: "minItems" | "minLength" | "minProperties", count: unknown, path: string): void {
    if (typeof count !== "number" || count <= this[keyword]) return;
    this[keyword] = count;
    this.paths = { ...this.paths, [keyword]: path };
  }

  atMost(keyword: "maxItems" | "maxLength" | "maxProperties", count: unknown, path: string): void {
    if (typeof count !== "number" || count >= this[keyword]) return;
    this[keyword] = count;
    this.paths = { ...this.paths, [keyword]: path };
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
