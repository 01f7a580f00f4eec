import type { JsonSchema, SchemaNode } from "./json-schema.ts";
import { FITS, type Misfit, type Outcome, Question } from "./question.ts";
import type { SchemaDocument } from "./schema-document.ts";
import type { TextRules } from "./text-rules.ts";
import { WorkBudget } from "./work-budget.ts";

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
