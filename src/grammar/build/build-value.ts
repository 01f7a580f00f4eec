import { canonicalText } from "../json-value.ts";
import type { SchemaGap, WorkBudget } from "../schema-errors.ts";
import type { TextRules } from "../text-rules.ts";
import { ALL_TYPES, type Branch, type ValueType } from "../terms/branch.ts";
import type { Expander } from "../terms/expand.ts";
import type { Conjunction } from "../terms/term.ts";
import { buildArray } from "./build-array.ts";
import { choice, literalOf, type Part, type Rule, ruleOf, text } from "./part.ts";
import { buildNumber, buildString } from "./build-scalar.ts";
import { buildObject } from "./build-object.ts";

interface BuilderParts {
  readonly expander: Expander;
  readonly texts: TextRules;
  readonly budget: WorkBudget;
  /** True: counts and patterns are left to the check. */
  readonly isCoarse: boolean;
  /** True: objects may have undeclared properties unless the schema forbids them. */
  readonly allowsUndeclared: boolean;
  readonly reportGap: (gap: SchemaGap) => void;
}

/** Builds the grammar of values, with one rule per conjunction of subschemas. */
export class ValueBuilder {
  readonly parts: BuilderParts;
  readonly #rules = new Map<string, Rule>();

  constructor(parts: BuilderParts) {
    this.parts = parts;
  }

  /** Builds the values that fit all terms. */
  value(terms: Conjunction, hint: string): Part {
    const { expander } = this.parts;
    const simple = expander.keys.simplify(terms);
    if (simple === undefined) return choice([]);
    const key = expander.keys.keyOfAll(simple);
    const known = this.#rules.get(key);
    if (known) return ruleOf(known);
    const rule: Rule = { hint: simple.length === 0 ? "value" : hint, body: choice([]) };
    this.#rules.set(key, rule);
    rule.body = this.#alternatives(expander.expand(simple), hint);
    return ruleOf(rule);
  }

  /** Returns the values that fit if they can be listed; undefined otherwise. */
  listed(terms: Conjunction): readonly unknown[] | undefined {
    const values = new Map<string, unknown>();
    for (const branch of this.parts.expander.expand(terms)) {
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

  #alternatives(branches: readonly Branch[], hint: string): Part {
    const literals = new Map<string, Part>();
    const parts: Part[] = [];
    for (const branch of branches) {
      this.parts.budget.spend();
      for (const { gap, type } of branch.gaps) {
        if (type === undefined || (!branch.values && branch.types.has(type))) this.parts.reportGap(gap);
      }
      if (branch.values) {
        for (const value of branch.values) literals.set(canonicalText(value), literalOf(value));
        continue;
      }
      for (const type of ALL_TYPES) {
        if (branch.types.has(type)) parts.push(this.#type(type, branch, hint));
      }
    }
    return choice([...literals.values(), ...parts]);
  }

  #type(type: ValueType, branch: Branch, hint: string): Part {
    switch (type) {
      case "null":
        return text("null");
      case "boolean":
        return choice(branch.booleans.map((value) => text(String(value))));
      case "number":
        return buildNumber(branch, this);
      case "string":
        return buildString(branch, this, hint);
      case "array":
        return buildArray(branch, this, hint);
      default:
        return buildObject(branch, this, hint);
    }
  }
}
