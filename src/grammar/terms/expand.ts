import type { JsonSchema } from "../json-schema.ts";
import { canonicalText } from "../json-value.ts";
import type { SchemaDocument } from "../schema-document.ts";
import type { WorkBudget } from "../schema-errors.ts";
import type { TextRules } from "../text-rules.ts";
import type { Validator } from "../validate.ts";
import { Branch, type Evaluated, type KeyFact, NOTHING_EVALUATED } from "./branch.ts";
import { negateTerm } from "./negate.ts";
import { giveUpUnevaluated, readTerm } from "./read-term.ts";
import { type Reading, work } from "./reading.ts";
import { type Conjunction, hasKey, holds, type KeyAtom, restOf, type Term, TermKeys } from "./term.ts";

/** Most alternatives of one value; more are left to the check, as they slow down sampling. */
const MAX_BRANCHES = 64;
/** Deepest nesting that is searched for unsatisfiable parts. */
const MAX_EMPTY_DEPTH = 4;
/** Steps of the budget per branch. */
const BRANCH_COST = 20;

const ANY_TEXT: JsonSchema = { type: ["string"] };

interface ExpanderParts {
  readonly document: SchemaDocument;
  readonly texts: TextRules;
  readonly validator: Validator;
  readonly budget: WorkBudget;
  /** True: alternatives are left to the check. */
  readonly isCoarse: boolean;
}

/** Expands conjunctions of subschemas to disjunctive normal form. */
export class Expander implements Reading {
  readonly document: SchemaDocument;
  readonly texts: TextRules;
  readonly keys = new TermKeys();
  readonly #validator: Validator;
  readonly #budget: WorkBudget;
  readonly #maxBranches: number;
  readonly #branches = new Map<string, readonly Branch[]>();
  readonly #namesInWork = new Set<string>();
  readonly #empty = new Map<string, boolean>();

  constructor({ document, texts, validator, budget, isCoarse }: ExpanderParts) {
    this.document = document;
    this.texts = texts;
    this.#validator = validator;
    this.#budget = budget;
    this.#maxBranches = isCoarse ? 1 : MAX_BRANCHES;
  }

  /** Returns alternatives that together cover all values that fit all terms. */
  expand(terms: Conjunction): readonly Branch[] {
    const simple = this.keys.simplify(terms);
    if (simple === undefined) return [];
    const key = this.keys.keyOfAll(simple);
    let branches = this.#branches.get(key);
    if (!branches) this.#branches.set(key, (branches = this.#expand(simple)));
    return branches;
  }

  isEmpty(terms: Conjunction): boolean {
    return this.#isEmpty(terms, 0);
  }

  textsOf(term: Term): KeyAtom | undefined {
    const key = this.keys.keyOf(term);
    // Recursion: a propertyNames that refers to its own schema.
    if (this.#namesInWork.has(key)) return undefined;
    this.#namesInWork.add(key);
    try {
      return this.#textsOf(term);
    } finally {
      this.#namesInWork.delete(key);
    }
  }

  #textsOf(term: Term): KeyAtom | undefined {
    const branches = this.expand([term, holds(ANY_TEXT)]);
    const sets = [];
    for (const branch of branches) {
      if (branch.gaps.some(({ type }) => type === undefined || type === "string")) return undefined;
      if (!branch.values && !this.texts.combinesLengths(branch)) return undefined;
      const set = branch.values ? this.texts.listed(textsIn(branch.values)) : this.texts.ofBranch(branch);
      sets.push(set);
    }
    const set = sets.reduce((some, each) => some.or(each), this.texts.listed([]));
    const id = `texts ${this.keys.keyOf(term)}`;
    if (!branches.every(({ values }) => values)) return { id, set };
    return { id, set, names: branches.flatMap(({ values }) => textsIn(values ?? [])) };
  }

  #expand(terms: Conjunction): readonly Branch[] {
    const first = new Branch();
    first.add(work(terms));
    this.#settle(first);
    const open = [first];
    const done: Branch[] = [];
    for (let branch = open.pop(); branch; branch = open.pop()) {
      this.#budget.spend(BRANCH_COST);
      if (branch.isDead) continue;
      if (branch.values) {
        this.#filterValues(branch, terms);
        if (!branch.isDead) done.push(branch);
        continue;
      }
      const [choice, ...rest] = branch.choices;
      branch.choices = rest;
      if (choice === undefined) {
        this.#finish(branch);
        if (!branch.isDead) done.push(branch);
      } else if (done.length + open.length + choice.alternatives.length > this.#maxBranches) {
        branch.leave(choice.keyword);
        for (const owner of branch.evaluated.keys()) giveUpUnevaluated(branch, owner);
        open.push(branch);
      } else {
        for (const alternative of choice.alternatives.toReversed()) {
          const copy = branch.copy();
          alternative(copy);
          this.#settle(copy);
          if (!copy.isDead) open.push(copy);
        }
      }
    }
    return done;
  }

  /** Reads all terms of a branch. */
  #settle(branch: Branch): void {
    // Copied, because copies of a branch share it. Chains of references may have thousands of terms.
    const read = new Set(branch.read);
    branch.read = read;
    while (branch.work.length > 0 && !branch.isDead) {
      this.#budget.spend();
      const [next, ...rest] = branch.work;
      branch.work = rest;
      if (next === undefined) return;
      const { node, holds: isMet, owners } = next;
      if (typeof node === "boolean") {
        if (node !== isMet) branch.die();
        continue;
      }
      const term = this.keys.keyOf({ node, holds: isMet });
      if (read.has(this.keys.keyOf({ node, holds: !isMet }))) branch.die();
      const own = `${term} ${owners.map((owner) => this.keys.keyOf(holds(owner))).join(" ")}`;
      if (read.has(own)) continue;
      read.add(own).add(term);
      if (isMet) readTerm(branch, node, [...new Set(owners)], this);
      else negateTerm(branch, node, this);
    }
  }

  #filterValues(branch: Branch, terms: Conjunction): void {
    const values = new Map<string, unknown>();
    for (const value of branch.values ?? []) {
      this.#budget.spend(BRANCH_COST);
      const fits = terms.every(
        ({ node, holds: isMet }) =>
          (this.#validator.validate(node, value, this.#budget) === undefined) === isMet,
      );
      if (fits) values.set(canonicalText(value), value);
    }
    branch.values = [...values.values()];
    branch.gaps = branch.gaps.filter(({ gap }) => typeof gap !== "string");
  }

  #finish(branch: Branch): void {
    for (const [owner, evaluated] of branch.evaluated) this.#readUnevaluated(branch, owner, evaluated);
    const { number } = branch;
    const low = Math.max(number.minimum, number.exclusiveMinimum);
    const high = Math.min(number.maximum, number.exclusiveMaximum);
    const isOpen = low === number.exclusiveMinimum || high === number.exclusiveMaximum;
    if (low > high || (low === high && isOpen) || (number.isInteger && number.isFraction))
      branch.without("number");
    if (branch.minLength > branch.maxLength) branch.without("string");
    if (branch.minItems > branch.maxItems) branch.without("array");
    const needed = Math.max(branch.minProperties, branch.required.size);
    if (needed > branch.maxProperties || this.#lacksRequired(branch)) branch.without("object");
    if (branch.types.has("string") && branch.texts.length > 0 && this.texts.ofBranch(branch).isEmpty()) {
      branch.without("string");
    }
  }

  #lacksRequired(branch: Branch): boolean {
    return [...branch.required].some(
      (name) => this.keys.simplify(this.termsOfProperty(branch, name)) === undefined,
    );
  }

  /** Returns the terms for the value of a property. */
  termsOfProperty(branch: Branch, name: string): Conjunction {
    return factsOfName(branch.keyFacts, name).flatMap(({ terms }) => terms);
  }

  #readUnevaluated(branch: Branch, owner: JsonSchema, evaluated: Evaluated = NOTHING_EVALUATED): void {
    const { unevaluatedProperties, unevaluatedItems } = owner;
    if (unevaluatedProperties !== undefined && !evaluated.allKeys) {
      const names = evaluated.keys.flatMap((keys) => [...keys.names]);
      const atoms = evaluated.keys.flatMap((keys) => keys.atoms);
      branch.restrictKeys(restOf(names, atoms), [holds(unevaluatedProperties)]);
    }
    if (unevaluatedItems === undefined || evaluated.allItems) return;
    if (evaluated.someItems) giveUpUnevaluated(branch, owner);
    else branch.restrictItems(evaluated.items, Number.POSITIVE_INFINITY, [holds(unevaluatedItems)]);
  }

  #isEmpty(terms: Conjunction, depth: number): boolean {
    const simple = this.keys.simplify(terms);
    if (simple === undefined) return true;
    if (depth > MAX_EMPTY_DEPTH) return false;
    const key = this.keys.keyOfAll(simple);
    const known = this.#empty.get(key);
    if (known !== undefined) return known;
    // A recursive schema is assumed satisfiable until a part of it is not.
    this.#empty.set(key, false);
    const isEmpty = this.expand(simple).every((branch) => this.#isBranchEmpty(branch, depth));
    this.#empty.set(key, isEmpty);
    return isEmpty;
  }

  #isBranchEmpty(branch: Branch, depth: number): boolean {
    if (branch.values) return branch.values.length === 0;
    const types = new Set(branch.types);
    const hasEmptyProperty = [...branch.required].some((name) =>
      this.#isEmpty(this.termsOfProperty(branch, name), depth + 1),
    );
    if (hasEmptyProperty) types.delete("object");
    const hasEmptyItem = branch.itemFacts.some(
      ({ from, terms }) => from < branch.minItems && this.#isEmpty(terms, depth + 1),
    );
    if (hasEmptyItem) types.delete("array");
    return types.size === 0;
  }
}

function textsIn(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === "string");
}

/** Positions of facts in their list. */
interface Index {
  /** Positions of the facts about listed names. */
  readonly byName: ReadonlyMap<string, readonly number[]>;
  readonly others: readonly number[];
}

/** Cache by list, as lists are never changed. */
const indices = new WeakMap<readonly KeyFact[], Index>();

/** Returns the facts about a property, in order. Indexed, as schemas may have thousands of properties. */
export function factsOfName(facts: readonly KeyFact[], name: string): readonly KeyFact[] {
  let index = indices.get(facts);
  if (!index) indices.set(facts, (index = indexOf(facts)));
  const others = index.others.filter((at) => hasKey(facts[at]!.keys, name));
  const all = [...(index.byName.get(name) ?? []), ...others];
  return all.toSorted((a, b) => a - b).map((at) => facts[at]!);
}

function indexOf(facts: readonly KeyFact[]): Index {
  const byName = new Map<string, number[]>();
  const others: number[] = [];
  for (const [at, { keys }] of facts.entries()) {
    if (keys.isRest || keys.atoms.length > 0) others.push(at);
    else
      for (const name of keys.names) {
        const known = byName.get(name);
        if (known) known.push(at);
        else byName.set(name, [at]);
      }
  }
  return { byName, others };
}
