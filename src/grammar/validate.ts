import { dependentsOf, isNames, isObject, type JsonSchema, type SchemaNode } from "./json-schema.ts";
import { canonicalText, isMultipleOf, lengthOf, typeOf } from "./json-value.ts";
import type { SchemaDocument } from "./schema-document.ts";
import { WorkBudget } from "./schema-errors.ts";
import type { TextRules } from "./text-rules.ts";

/**
 * Validates values against a normalized schema: draft 7 and 2020-12, formats included. What it cannot decide (a reference
 * that leads nowhere, a pattern that is not regular) fits.
 *
 * No library does it, because a library runs patterns with backtracking, where a hostile one stops the event loop, or
 * compiles schemas with eval. Here patterns are automata, and no subschema is asked twice about the same value, so the time
 * is bounded by the product of both sizes.
 */
export class Validator {
  readonly #document: SchemaDocument;
  readonly #texts: TextRules;
  #known = new Map<JsonSchema, Map<unknown, Outcome>>();
  #budget = new WorkBudget(Infinity);

  constructor(document: SchemaDocument, texts: TextRules) {
    this.#document = document;
    this.#texts = texts;
  }

  /**
   * The first misfit of a value that JSON.parse has made.
   * @throws SchemaTooComplexError when the budget has no step left for each subschema and value of it that meet
   */
  validate(node: SchemaNode, value: unknown, budget = new WorkBudget(Infinity)): Misfit | undefined {
    this.#known = new Map();
    this.#budget = budget;
    return this.#ask(node, value).misfit;
  }

  #ask(node: SchemaNode, value: unknown): Outcome {
    if (typeof node === "boolean") {
      return node ? FITS : { ...FITS, misfit: { at: [], keyword: "false", node: undefined } };
    }
    let answers = this.#known.get(node);
    if (!answers) this.#known.set(node, (answers = new Map<unknown, Outcome>()));
    const known = answers.get(value);
    if (known) return known;
    this.#budget.spend();
    // A reference that leads back here with the same value adds nothing.
    answers.set(value, FITS);
    const outcome = new Question(node, value, {
      texts: this.#texts,
      document: this.#document,
      budget: this.#budget,
      ask: (inner, part) => this.#ask(inner, part),
    }).answer();
    answers.set(value, outcome);
    return outcome;
  }
}

/** The first thing of a value that does not fit its schema. */
interface Misfit {
  /** Where in the value, from its root. */
  readonly at: readonly (string | number)[];
  /** The keyword that it breaks; "false" for the schema false. */
  readonly keyword: string;
  /** The subschema that the keyword belongs to. */
  readonly node: JsonSchema | undefined;
}

/** What the keywords that fitted have looked at, for unevaluatedProperties and unevaluatedItems. */
interface Seen {
  readonly names: Set<string>;
  readonly items: Set<number>;
}

/** What asking a subschema about a value has given. */
interface Outcome {
  readonly misfit?: Misfit;
  readonly seen: Seen;
}

/** It fits, and has looked at nothing. */
const FITS: Outcome = { seen: { names: new Set(), items: new Set() } };

/** Who answers a question. */
interface Answering {
  readonly texts: TextRules;
  readonly document: SchemaDocument;
  readonly budget: WorkBudget;
  readonly ask: (node: SchemaNode, value: unknown) => Outcome;
}

/** One subschema asked about one value. */
class Question {
  readonly #node: JsonSchema;
  readonly #value: unknown;
  readonly #texts: TextRules;
  readonly #document: SchemaDocument;
  readonly #budget: WorkBudget;
  readonly #ask: (node: SchemaNode, value: unknown) => Outcome;
  readonly #seen: Seen = { names: new Set(), items: new Set() };
  #misfit: Misfit | undefined;

  constructor(node: JsonSchema, value: unknown, { texts, document, budget, ask }: Answering) {
    this.#node = node;
    this.#value = value;
    this.#texts = texts;
    this.#document = document;
    this.#budget = budget;
    this.#ask = ask;
  }

  answer(): Outcome {
    const value = this.#value;
    this.#askValue();
    this.#askApplied();
    if (typeof value === "string") this.#askText(value);
    else if (typeof value === "number") this.#askNumber(value);
    else if (Array.isArray(value)) this.#askItems(value);
    else if (isObject(value)) this.#askProperties(value);
    return this.#misfit ? { misfit: this.#misfit, seen: FITS.seen } : { seen: this.#seen };
  }

  #fail(keyword: string, at: readonly (string | number)[] = []): void {
    this.#misfit ??= { at, keyword, node: this.#node };
  }

  /** Keeps the misfit of a part of the value. */
  #part(node: SchemaNode, value: unknown, at: string | number, keyword: string): boolean {
    const { misfit } = this.#ask(node, value);
    if (misfit?.node === undefined && misfit) this.#fail(keyword, [at]);
    else if (misfit) this.#misfit ??= { ...misfit, at: [at, ...misfit.at] };
    return misfit === undefined;
  }

  #look(seen: Seen): void {
    for (const name of seen.names) this.#seen.names.add(name);
    for (const item of seen.items) this.#seen.items.add(item);
  }

  /** What cannot be followed may have evaluated everything. */
  #lookAtAll(): void {
    const value = this.#value;
    if (Array.isArray(value)) for (const index of value.keys()) this.#seen.items.add(index);
    else if (isObject(value)) {
      for (const name of Object.keys(value)) this.#seen.names.add(name);
    }
  }

  #askValue(): void {
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

  #askApplied(): void {
    const { allOf, anyOf, oneOf, not, if: condition } = this.#node;
    const all = [...(allOf ?? [])];
    for (const { target } of this.#document.references(this.#node)) {
      if (target === undefined) this.#lookAtAll();
      else all.push(target);
    }
    for (const each of all) this.#keep(this.#ask(each, this.#value), "allOf");
    if (anyOf !== undefined) {
      const outcomes = (anyOf ?? []).map((each) => this.#ask(each, this.#value));
      const fitting = outcomes.filter(({ misfit }) => misfit === undefined);
      if (fitting.length === 0) {
        if (outcomes.length === 1) this.#keep(outcomes[0]!, "anyOf");
        this.#fail("anyOf");
      }
      for (const { seen } of fitting) this.#look(seen);
    }
    if (oneOf !== undefined) {
      const fitting = (oneOf ?? [])
        .map((each) => this.#ask(each, this.#value))
        .filter(({ misfit }) => misfit === undefined);
      if (fitting.length !== 1) this.#fail("oneOf");
      else this.#look(fitting[0]!.seen);
    }
    if (not !== undefined && this.#ask(not, this.#value).misfit === undefined) this.#fail("not");
    if (condition !== undefined) {
      const outcome = this.#ask(condition, this.#value);
      const fits = outcome.misfit === undefined;
      if (fits) this.#look(outcome.seen);
      const branch = fits ? this.#node.then : this.#node.else;
      if (branch !== undefined) this.#keep(this.#ask(branch, this.#value), fits ? "then" : "else");
    }
  }

  /** A subschema that has to hold for the same value. */
  #keep({ misfit, seen }: Outcome, keyword: string): void {
    if (misfit?.node === undefined && misfit) this.#fail(keyword);
    this.#misfit ??= misfit;
    this.#look(seen);
  }

  #askText(value: string): void {
    const { minLength, maxLength, pattern, format } = this.#node;
    if (minLength !== undefined || maxLength !== undefined) {
      const length = lengthOf(value);
      if (typeof minLength === "number" && length < minLength) this.#fail("minLength");
      if (typeof maxLength === "number" && length > maxLength) this.#fail("maxLength");
    }
    if (typeof pattern === "string" && !this.#texts.fitsPattern(value, pattern)) this.#fail("pattern");
    if (typeof format === "string" && !this.#texts.fitsFormat(value, format)) this.#fail("format");
  }

  #askNumber(value: number): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = this.#node;
    if (typeof minimum === "number" && value < minimum) this.#fail("minimum");
    if (typeof maximum === "number" && value > maximum) this.#fail("maximum");
    if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) this.#fail("exclusiveMinimum");
    if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) this.#fail("exclusiveMaximum");
    if (typeof multipleOf === "number" && !isMultipleOf(value, multipleOf)) this.#fail("multipleOf");
  }

  #askItems(value: readonly unknown[]): void {
    const { prefixItems, items, minItems, maxItems, uniqueItems, contains, unevaluatedItems } = this.#node;
    const prefix = prefixItems ?? [];
    for (const [index, item] of value.entries()) {
      const own = index < prefix.length ? prefix[index] : items;
      if (own === undefined) continue;
      this.#part(own, item, index, index < prefix.length ? "prefixItems" : "items");
      this.#seen.items.add(index);
    }
    if (typeof minItems === "number" && value.length < minItems) this.#fail("minItems");
    if (typeof maxItems === "number" && value.length > maxItems) this.#fail("maxItems");
    if (uniqueItems === true && new Set(value.map(canonicalText)).size < value.length)
      this.#fail("uniqueItems");
    if (contains !== undefined) this.#askContains(value, contains);
    if (unevaluatedItems === undefined) return;
    for (const [index, item] of value.entries()) {
      if (this.#seen.items.has(index)) continue;
      this.#part(unevaluatedItems, item, index, "unevaluatedItems");
      this.#seen.items.add(index);
    }
  }

  #askContains(value: readonly unknown[], contains: SchemaNode): void {
    const { minContains = 1, maxContains } = this.#node;
    let count = 0;
    for (const [index, item] of value.entries()) {
      if (this.#ask(contains, item).misfit) continue;
      count += 1;
      this.#seen.items.add(index);
    }
    if (count < minContains) this.#fail(minContains === 1 ? "contains" : "minContains");
    if (typeof maxContains === "number" && count > maxContains) this.#fail("maxContains");
  }

  #askProperties(value: Readonly<Record<string, unknown>>): void {
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
        this.#part(declared[name] ?? true, field, name, "properties");
      }
      for (const [pattern, node] of patterns) {
        if (!this.#texts.fitsPattern(name, pattern)) continue;
        isKnown = true;
        this.#part(node, field, name, "patternProperties");
      }
      if (!isKnown && additionalProperties !== undefined) {
        isKnown = true;
        this.#part(additionalProperties, field, name, "additionalProperties");
      }
      if (isKnown) this.#seen.names.add(name);
      if (propertyNames !== undefined && this.#ask(propertyNames, name).misfit) {
        this.#fail("propertyNames", [name]);
      }
    }
    for (const name of this.#node.required ?? []) {
      if (!Object.hasOwn(value, name)) this.#fail("required", [name]);
    }
    if (typeof minProperties === "number" && names.length < minProperties) this.#fail("minProperties");
    if (typeof maxProperties === "number" && names.length > maxProperties) this.#fail("maxProperties");
    this.#askDependents(value);
    if (unevaluatedProperties === undefined) return;
    for (const name of names) {
      if (this.#seen.names.has(name)) continue;
      this.#part(unevaluatedProperties, value[name], name, "unevaluatedProperties");
      this.#seen.names.add(name);
    }
  }

  #askDependents(value: Readonly<Record<string, unknown>>): void {
    for (const [name, needed] of dependentsOf(this.#node)) {
      if (!Object.hasOwn(value, name)) continue;
      if (!isNames(needed)) this.#keep(this.#ask(needed, value), "dependentSchemas");
      else if (!needed.every((each) => Object.hasOwn(value, each))) this.#fail("dependentRequired", [name]);
    }
  }
}

const TEXTS_OF_VALUES = new WeakMap<object, ReadonlySet<string>>();

/** The texts of an enum, which may be long and is asked often. */
function canonicalTexts(values: readonly unknown[]): ReadonlySet<string> {
  let texts = TEXTS_OF_VALUES.get(values);
  if (!texts) TEXTS_OF_VALUES.set(values, (texts = new Set(values.map(canonicalText))));
  return texts;
}
