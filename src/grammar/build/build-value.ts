import { canonicalText } from "../json-value.ts";
import { ALL_TYPES, type Branch, type ValueType } from "../terms/branch.ts";
import type { Conjunction } from "../terms/term.ts";
import { buildArray } from "./build-array.ts";
import { buildObject } from "./build-object.ts";
import { buildNumber, buildString } from "./build-scalar.ts";
import { type BuildContext, choice, literalOf, NOTHING, type Part, RuleTable, text } from "./part.ts";

/** Builds the grammar of values, with one rule per conjunction of subschemas. */
export class ValueBuilder {
  readonly #context: BuildContext;
  readonly #rules = new RuleTable();

  constructor(context: Omit<BuildContext, "value">) {
    this.#context = { ...context, value: (terms, hint) => this.value(terms, hint) };
  }

  /** Builds the values that fit all terms. */
  value(terms: Conjunction, hint: string): Part {
    const { expander } = this.#context;
    const simple = expander.keys.simplify(terms);
    if (simple === undefined) return NOTHING;
    const key = expander.keys.keyOfAll(simple);
    return this.#rules.rule(key, simple.length === 0 ? "value" : hint, () =>
      this.#alternatives(expander.expand(simple), hint),
    );
  }

  #alternatives(branches: readonly Branch[], hint: string): Part {
    const { budget, reportGap } = this.#context;
    const literals = new Map<string, Part>();
    const parts: Part[] = [];
    for (const branch of branches) {
      budget.spend();
      for (const { gap, type } of branch.gaps) {
        if (type === undefined || (!branch.values && branch.types.has(type))) reportGap(gap);
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
        return buildNumber(branch, this.#context);
      case "string":
        return buildString(branch, this.#context, hint);
      case "array":
        return buildArray(branch, this.#context, hint);
      default:
        return buildObject(branch, this.#context, hint);
    }
  }
}
