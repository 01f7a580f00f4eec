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
  readonly document: SchemaDocument;
  readonly texts: TextRules;
  budget = new WorkBudget(Infinity);
  #outcomes = new Map<JsonSchema, Map<unknown, Outcome>>();

  constructor(document: SchemaDocument, texts: TextRules) {
    this.document = document;
    this.texts = texts;
  }

  /**
   * Returns the first violation of a value from JSON.parse, or undefined.
   * @throws SchemaTooComplexError if the budget is exhausted; each pair of a subschema and a value takes a step
   */
  validate(node: SchemaNode, value: unknown, budget = new WorkBudget(Infinity)): Violation | undefined {
    this.#outcomes = new Map();
    this.budget = budget;
    return this.outcomeOf(node, value).violation;
  }

  /** Validates a value or a part of it against a subschema, once. */
  outcomeOf(node: SchemaNode, value: unknown): Outcome {
    if (typeof node === "boolean") {
      return node ? VALID : { ...VALID, violation: { at: [], keyword: "false", node: undefined } };
    }
    let answers = this.#outcomes.get(node);
    if (!answers) this.#outcomes.set(node, (answers = new Map<unknown, Outcome>()));
    const known = answers.get(value);
    if (known) return known;
    this.budget.spend();
    // A reference back to here with the same value adds nothing.
    answers.set(value, VALID);
    const outcome = new NodeValidation(node, value, this).run();
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

/** Result of validating a value against a subschema. */
interface Outcome {
  readonly violation?: Violation;
  /** Names or positions of the parts that satisfied keywords have evaluated, for unevaluatedProperties and unevaluatedItems. */
  readonly evaluated: ReadonlySet<string | number>;
}

/** Valid, without evaluated parts. */
const VALID: Outcome = { evaluated: new Set() };

/** Validation of one value against one subschema. */
class NodeValidation {
  readonly #node: JsonSchema;
  readonly #value: unknown;
  readonly #validator: Validator;
  readonly #evaluated = new Set<string | number>();
  #violation: Violation | undefined;

  constructor(node: JsonSchema, value: unknown, validator: Validator) {
    this.#node = node;
    this.#value = value;
    this.#validator = validator;
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
  #checkPart(node: SchemaNode, value: unknown, at: string | number, keyword: string): void {
    const { violation } = this.#validator.outcomeOf(node, value);
    if (violation && violation.node === undefined) this.#fail(keyword, [at]);
    else if (violation) this.#violation ??= { ...violation, at: [at, ...violation.at] };
  }

  /** Validates the parts that nothing else has evaluated. */
  #checkUnevaluated(keyword: "unevaluatedItems" | "unevaluatedProperties"): void {
    const node = this.#node[keyword];
    if (node === undefined) return;
    for (const [at, part] of partsOf(this.#value)) {
      if (!this.#evaluated.has(at)) this.#checkPart(node, part, at, keyword);
      this.#evaluated.add(at);
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
    for (const { target } of this.#validator.document.references(this.#node)) {
      if (target !== undefined) all.push(target);
      else for (const [at] of partsOf(this.#value)) this.#evaluated.add(at);
    }
    for (const each of all) this.#apply(each, "allOf");
    if (anyOf !== undefined) {
      const fitting = this.#fitting(anyOf);
      if (fitting.length === 0) {
        if (anyOf.length === 1) this.#apply(anyOf[0]!, "anyOf");
        this.#fail("anyOf");
      }
      for (const outcome of fitting) this.#markEvaluated(outcome);
    }
    if (oneOf !== undefined) {
      const fitting = this.#fitting(oneOf);
      if (fitting.length !== 1) this.#fail("oneOf");
      else this.#markEvaluated(fitting[0]!);
    }
    if (not !== undefined && this.#validator.outcomeOf(not, this.#value).violation === undefined)
      this.#fail("not");
    if (condition !== undefined) {
      const outcome = this.#validator.outcomeOf(condition, this.#value);
      const fits = outcome.violation === undefined;
      if (fits) this.#markEvaluated(outcome);
      const branch = fits ? this.#node.then : this.#node.else;
      if (branch !== undefined) this.#apply(branch, fits ? "then" : "else");
    }
  }

  /** Returns the outcomes of the subschemas that the value fits. */
  #fitting(nodes: readonly SchemaNode[]): Outcome[] {
    const outcomes = nodes.map((each) => this.#validator.outcomeOf(each, this.#value));
    return outcomes.filter(({ violation }) => violation === undefined);
  }

  #markEvaluated({ evaluated }: Outcome): void {
    for (const at of evaluated) this.#evaluated.add(at);
  }

  /** Applies a subschema to the same value. */
  #apply(node: SchemaNode, keyword: string): void {
    const outcome = this.#validator.outcomeOf(node, this.#value);
    if (outcome.violation && outcome.violation.node === undefined) this.#fail(keyword);
    this.#violation ??= outcome.violation;
    this.#markEvaluated(outcome);
  }

  #checkText(value: string): void {
    const { minLength, maxLength, pattern, format } = this.#node;
    if (minLength !== undefined || maxLength !== undefined) {
      const length = lengthOf(value);
      if (typeof minLength === "number" && length < minLength) this.#fail("minLength");
      if (typeof maxLength === "number" && length > maxLength) this.#fail("maxLength");
    }
    if (typeof pattern === "string" && !this.#validator.texts.fitsPattern(value, pattern))
      this.#fail("pattern");
    if (typeof format === "string" && !this.#validator.texts.fitsFormat(value, format)) this.#fail("format");
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
    const { prefixItems, items, minItems, maxItems, uniqueItems, contains } = this.#node;
    const prefix = prefixItems ?? [];
    for (const [index, item] of value.entries()) {
      const own = index < prefix.length ? prefix[index] : items;
      if (own === undefined) continue;
      this.#checkPart(own, item, index, index < prefix.length ? "prefixItems" : "items");
      this.#evaluated.add(index);
    }
    if (typeof minItems === "number" && value.length < minItems) this.#fail("minItems");
    if (typeof maxItems === "number" && value.length > maxItems) this.#fail("maxItems");
    if (uniqueItems === true && new Set(value.map(canonicalText)).size < value.length)
      this.#fail("uniqueItems");
    if (contains !== undefined) this.#checkContains(value, contains);
    this.#checkUnevaluated("unevaluatedItems");
  }

  #checkContains(value: readonly unknown[], contains: SchemaNode): void {
    const { minContains = 1, maxContains } = this.#node;
    let count = 0;
    for (const [index, item] of value.entries()) {
      if (this.#validator.outcomeOf(contains, item).violation) continue;
      count += 1;
      this.#evaluated.add(index);
    }
    if (count < minContains) this.#fail(minContains === 1 ? "contains" : "minContains");
    if (typeof maxContains === "number" && count > maxContains) this.#fail("maxContains");
  }

  #checkProperties(value: Readonly<Record<string, unknown>>): void {
    const { properties, patternProperties, additionalProperties, propertyNames } = this.#node;
    const { minProperties, maxProperties } = this.#node;
    const declared = properties ?? {};
    const patterns = Object.entries(patternProperties ?? {});
    const names = Object.keys(value);
    for (const name of names) {
      this.#validator.budget.spend(patterns.length);
      const field = value[name];
      let isKnown = false;
      if (Object.hasOwn(declared, name)) {
        isKnown = true;
        this.#checkPart(declared[name] ?? true, field, name, "properties");
      }
      for (const [pattern, node] of patterns) {
        if (!this.#validator.texts.fitsPattern(name, pattern)) continue;
        isKnown = true;
        this.#checkPart(node, field, name, "patternProperties");
      }
      if (!isKnown && additionalProperties !== undefined) {
        isKnown = true;
        this.#checkPart(additionalProperties, field, name, "additionalProperties");
      }
      if (isKnown) this.#evaluated.add(name);
      if (propertyNames !== undefined && this.#validator.outcomeOf(propertyNames, name).violation) {
        this.#fail("propertyNames", [name]);
      }
    }
    for (const name of this.#node.required ?? []) {
      if (!Object.hasOwn(value, name)) this.#fail("required", [name]);
    }
    if (typeof minProperties === "number" && names.length < minProperties) this.#fail("minProperties");
    if (typeof maxProperties === "number" && names.length > maxProperties) this.#fail("maxProperties");
    this.#checkDependents(value);
    this.#checkUnevaluated("unevaluatedProperties");
  }

  #checkDependents(value: Readonly<Record<string, unknown>>): void {
    for (const [name, needed] of dependentsOf(this.#node)) {
      if (!Object.hasOwn(value, name)) continue;
      if (!isNames(needed)) this.#apply(needed, "dependentSchemas");
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

/** Returns the parts of an array or object, by position or name. */
function partsOf(value: unknown): readonly (readonly [at: string | number, part: unknown])[] {
  if (Array.isArray(value)) return [...value.entries()];
  return isRecord(value) ? Object.entries(value) : [];
}
