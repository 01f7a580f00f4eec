import { isMultipleOf } from "./numbers/number-bounds.ts";
import { isRecord } from "../json/json-values.ts";
import { dependentsOf, isNames, type JsonSchema, type SchemaNode } from "./json-schema.ts";
import { canonicalText, lengthOf, typeOf } from "./json-value.ts";
import type { SchemaDocument } from "./schema-document.ts";
import { WorkBudget } from "./schema-errors.ts";
import type { TextRules } from "./text-rules.ts";

/**
 * Validates values against a normalized schema: draft 7 and 2020-12, including formats. Keywords that cannot be decided
 * (an unresolved reference, a pattern that is not regular) are satisfied.
 *
 * Libraries do not suffice: they run patterns with backtracking, so that a hostile one blocks the event loop, or
 * compile schemas with eval. Here patterns are automata, and results are cached by subschema and value, so the time is
 * bounded by the product of both sizes.
 */
export class Validator {
  readonly #document: SchemaDocument;
  readonly #texts: TextRules;
  #outcomes = new Map<JsonSchema, Map<unknown, Outcome>>();
  #budget = new WorkBudget(Infinity);

  constructor(document: SchemaDocument, texts: TextRules) {
    this.#document = document;
    this.#texts = texts;
  }

  /**
   * Returns the first violation of a value from JSON.parse, or undefined.
   * @throws SchemaTooComplexError if the budget is exhausted; each pair of a subschema and a value takes a step
   */
  validate(node: SchemaNode, value: unknown, budget = new WorkBudget(Infinity)): Violation | undefined {
    this.#outcomes = new Map();
    this.#budget = budget;
    return this.#validate(node, value).violation;
  }

  #validate(node: SchemaNode, value: unknown): Outcome {
    if (typeof node === "boolean") {
      return node ? VALID : { ...VALID, violation: { at: [], keyword: "false", node: undefined } };
    }
    let answers = this.#outcomes.get(node);
    if (!answers) this.#outcomes.set(node, (answers = new Map<unknown, Outcome>()));
    const known = answers.get(value);
    if (known) return known;
    this.#budget.spend();
    // A reference back to here with the same value adds nothing.
    answers.set(value, VALID);
    const outcome = new NodeValidation(node, value, {
      texts: this.#texts,
      document: this.#document,
      budget: this.#budget,
      validate: (inner, part) => this.#validate(inner, part),
    }).run();
    answers.set(value, outcome);
    return outcome;
  }
}

/** First violation of a schema in a value. */
interface Violation {
  /** Path in the value, from its root. */
  readonly at: readonly (string | number)[];
  /** Violated keyword; "false" for the schema false. */
  readonly keyword: string;
  /** Subschema with the keyword. */
  readonly node: JsonSchema | undefined;
}

/** Parts of a value that satisfied keywords have evaluated, for unevaluatedProperties and unevaluatedItems. */
interface Evaluated {
  readonly names: Set<string>;
  readonly items: Set<number>;
}

/** Result of validating a value against a subschema. */
interface Outcome {
  readonly violation?: Violation;
  readonly evaluated: Evaluated;
}

/** Valid, without evaluated parts. */
const VALID: Outcome = { evaluated: { names: new Set(), items: new Set() } };

interface ValidationContext {
  readonly texts: TextRules;
  readonly document: SchemaDocument;
  readonly budget: WorkBudget;
  readonly validate: (node: SchemaNode, value: unknown) => Outcome;
}

/** Validation of one value against one subschema. */
class NodeValidation {
  readonly #node: JsonSchema;
  readonly #value: unknown;
  readonly #texts: TextRules;
  readonly #document: SchemaDocument;
  readonly #budget: WorkBudget;
  readonly #validate: (node: SchemaNode, value: unknown) => Outcome;
  readonly #evaluated: Evaluated = { names: new Set(), items: new Set() };
  #violation: Violation | undefined;

  constructor(node: JsonSchema, value: unknown, { texts, document, budget, validate }: ValidationContext) {
    this.#node = node;
    this.#value = value;
    this.#texts = texts;
    this.#document = document;
    this.#budget = budget;
    this.#validate = validate;
  }

  run(): Outcome {
    const value = this.#value;
    this.#checkValue();
    this.#checkSubschemas();
    if (typeof value === "string") this.#checkText(value);
    else if (typeof value === "number") this.#checkNumber(value);
    else if (Array.isArray(value)) this.#checkItems(value);
    else if (isRecord(value)) this.#checkProperties(value);
    return this.#violation
      ? { violation: this.#violation, evaluated: VALID.evaluated }
      : { evaluated: this.#evaluated };
  }

  #fail(keyword: string, at: readonly (string | number)[] = []): void {
    this.#violation ??= { at, keyword, node: this.#node };
  }

  /** Validates a part of the value, and records its violation. */
  #checkPart(node: SchemaNode, value: unknown, at: string | number, keyword: string): boolean {
    const { violation: misfit } = this.#validate(node, value);
    if (misfit?.node === undefined && misfit) this.#fail(keyword, [at]);
    else if (misfit) this.#violation ??= { ...misfit, at: [at, ...misfit.at] };
    return misfit === undefined;
  }

  #markEvaluated(evaluated: Evaluated): void {
    for (const name of evaluated.names) this.#evaluated.names.add(name);
    for (const item of evaluated.items) this.#evaluated.items.add(item);
  }

  /** Marks all parts as evaluated, for a reference that cannot be resolved. */
  #markAllEvaluated(): void {
    const value = this.#value;
    if (Array.isArray(value)) for (const index of value.keys()) this.#evaluated.items.add(index);
    else if (isRecord(value)) {
      for (const name of Object.keys(value)) this.#evaluated.names.add(name);
    }
  }

  #checkValue(): void {
    const { type, enum: values } = this.#node;
    const own = typeOf(this.#value);
    if (Array.isArray(type)) {
      const fits = type.some(
        (each) => each === own || (each === "integer" && own === "number" && Number.isInteger(this.#value)),
      );
      if (!fits) this.#fail("type");
    }
    if (Array.isArray(values)) {
      if (!canonicalTexts(values).has(canonicalText(this.#value))) this.#fail("enum");
    }
    if ("const" in this.#node && canonicalText(this.#node.const) !== canonicalText(this.#value))
      this.#fail("const");
  }

  #checkSubschemas(): void {
    const { allOf, anyOf, oneOf, not, if: condition } = this.#node;
    const all = [...(allOf ?? [])];
    for (const { target } of this.#document.references(this.#node)) {
      if (target === undefined) this.#markAllEvaluated();
      else all.push(target);
    }
    for (const each of all) this.#apply(this.#validate(each, this.#value), "allOf");
    if (anyOf !== undefined) {
      const outcomes = (anyOf ?? []).map((each) => this.#validate(each, this.#value));
      const fitting = outcomes.filter(({ violation: misfit }) => misfit === undefined);
      if (fitting.length === 0) {
        if (outcomes.length === 1) this.#apply(outcomes[0]!, "anyOf");
        this.#fail("anyOf");
      }
      for (const { evaluated: seen } of fitting) this.#markEvaluated(seen);
    }
    if (oneOf !== undefined) {
      const fitting = (oneOf ?? [])
        .map((each) => this.#validate(each, this.#value))
        .filter(({ violation: misfit }) => misfit === undefined);
      if (fitting.length !== 1) this.#fail("oneOf");
      else this.#markEvaluated(fitting[0]!.evaluated);
    }
    if (not !== undefined && this.#validate(not, this.#value).violation === undefined) this.#fail("not");
    if (condition !== undefined) {
      const outcome = this.#validate(condition, this.#value);
      const fits = outcome.violation === undefined;
      if (fits) this.#markEvaluated(outcome.evaluated);
      const branch = fits ? this.#node.then : this.#node.else;
      if (branch !== undefined) this.#apply(this.#validate(branch, this.#value), fits ? "then" : "else");
    }
  }

  /** Applies the outcome of a subschema for the same value. */
  #apply({ violation: misfit, evaluated: seen }: Outcome, keyword: string): void {
    if (misfit?.node === undefined && misfit) this.#fail(keyword);
    this.#violation ??= misfit;
    this.#markEvaluated(seen);
  }

  #checkText(value: string): void {
    const { minLength, maxLength, pattern, format } = this.#node;
    if (minLength !== undefined || maxLength !== undefined) {
      const length = lengthOf(value);
      if (typeof minLength === "number" && length < minLength) this.#fail("minLength");
      if (typeof maxLength === "number" && length > maxLength) this.#fail("maxLength");
    }
    if (typeof pattern === "string" && !this.#texts.fitsPattern(value, pattern)) this.#fail("pattern");
    if (typeof format === "string" && !this.#texts.fitsFormat(value, format)) this.#fail("format");
  }

  #checkNumber(value: number): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = this.#node;
    if (typeof minimum === "number" && value < minimum) this.#fail("minimum");
    if (typeof maximum === "number" && value > maximum) this.#fail("maximum");
    if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) this.#fail("exclusiveMinimum");
    if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) this.#fail("exclusiveMaximum");
    if (typeof multipleOf === "number" && !isMultipleOf(value, multipleOf)) this.#fail("multipleOf");
  }

  #checkItems(value: readonly unknown[]): void {
    const { prefixItems, items, minItems, maxItems, uniqueItems, contains, unevaluatedItems } = this.#node;
    const prefix = prefixItems ?? [];
    for (const [index, item] of value.entries()) {
      const own = index < prefix.length ? prefix[index] : items;
      if (own === undefined) continue;
      this.#checkPart(own, item, index, index < prefix.length ? "prefixItems" : "items");
      this.#evaluated.items.add(index);
    }
    if (typeof minItems === "number" && value.length < minItems) this.#fail("minItems");
    if (typeof maxItems === "number" && value.length > maxItems) this.#fail("maxItems");
    if (uniqueItems === true && new Set(value.map(canonicalText)).size < value.length)
      this.#fail("uniqueItems");
    if (contains !== undefined) this.#checkContains(value, contains);
    if (unevaluatedItems === undefined) return;
    for (const [index, item] of value.entries()) {
      if (this.#evaluated.items.has(index)) continue;
      this.#checkPart(unevaluatedItems, item, index, "unevaluatedItems");
      this.#evaluated.items.add(index);
    }
  }

  #checkContains(value: readonly unknown[], contains: SchemaNode): void {
    const { minContains = 1, maxContains } = this.#node;
    let count = 0;
    for (const [index, item] of value.entries()) {
      if (this.#validate(contains, item).violation) continue;
      count += 1;
      this.#evaluated.items.add(index);
    }
    if (count < minContains) this.#fail(minContains === 1 ? "contains" : "minContains");
    if (typeof maxContains === "number" && count > maxContains) this.#fail("maxContains");
  }

  #checkProperties(value: Readonly<Record<string, unknown>>): void {
    const { properties, patternProperties, additionalProperties, propertyNames } = this.#node;
    const { minProperties, maxProperties, unevaluatedProperties } = this.#node;
    const declared = properties ?? {};
    const patterns = Object.entries(patternProperties ?? {});
    const names = Object.keys(value);
    for (const name of names) {
      this.#budget.spend(patterns.length);
      const field = value[name];
      let isKnown = false;
      if (Object.hasOwn(declared, name)) {
        isKnown = true;
        this.#checkPart(declared[name] ?? true, field, name, "properties");
      }
      for (const [pattern, node] of patterns) {
        if (!this.#texts.fitsPattern(name, pattern)) continue;
        isKnown = true;
        this.#checkPart(node, field, name, "patternProperties");
      }
      if (!isKnown && additionalProperties !== undefined) {
        isKnown = true;
        this.#checkPart(additionalProperties, field, name, "additionalProperties");
      }
      if (isKnown) this.#evaluated.names.add(name);
      if (propertyNames !== undefined && this.#validate(propertyNames, name).violation) {
        this.#fail("propertyNames", [name]);
      }
    }
    for (const name of this.#node.required ?? []) {
      if (!Object.hasOwn(value, name)) this.#fail("required", [name]);
    }
    if (typeof minProperties === "number" && names.length < minProperties) this.#fail("minProperties");
    if (typeof maxProperties === "number" && names.length > maxProperties) this.#fail("maxProperties");
    this.#checkDependents(value);
    if (unevaluatedProperties === undefined) return;
    for (const name of names) {
      if (this.#evaluated.names.has(name)) continue;
      this.#checkPart(unevaluatedProperties, value[name], name, "unevaluatedProperties");
      this.#evaluated.names.add(name);
    }
  }

  #checkDependents(value: Readonly<Record<string, unknown>>): void {
    for (const [name, needed] of dependentsOf(this.#node)) {
      if (!Object.hasOwn(value, name)) continue;
      if (!isNames(needed)) this.#apply(this.#validate(needed, value), "dependentSchemas");
      else if (!needed.every((each) => Object.hasOwn(value, each))) this.#fail("dependentRequired", [name]);
    }
  }
}

const TEXTS_OF_VALUES = new WeakMap<object, ReadonlySet<string>>();

/** Canonical texts of an enum, cached as it may be long and used often. */
function canonicalTexts(values: readonly unknown[]): ReadonlySet<string> {
  let texts = TEXTS_OF_VALUES.get(values);
  if (!texts) TEXTS_OF_VALUES.set(values, (texts = new Set(values.map(canonicalText))));
  return texts;
}
