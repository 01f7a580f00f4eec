import type { SchemaNode } from "./json-schema.ts";
import { SchemaDocument } from "./schema-document.ts";
import { TextRules } from "./text-rules.ts";
import { Validator } from "./validate.ts";
import type { WorkBudget } from "./work-budget.ts";

/** What of an answer does not fit its schema. */
export interface CheckFailure {
  /** Where in the answer, dotted; "" for all of it. */
  readonly path: string;
  /** The keyword that is broken; "json" if the answer is not JSON. */
  readonly keyword: string;
  /** One sentence without anything of the answer's content. */
  readonly message: string;
}

/** A schema with all that is needed to compile it and to check answers. */
export class SchemaSource {
  /** The tool that it belongs to. */
  readonly tool: string | undefined;
  readonly document: SchemaDocument;
  readonly texts = new TextRules();
  readonly validator: Validator;

  constructor(schema: unknown, tool?: string) {
    this.tool = tool;
    this.document = new SchemaDocument(schema);
    this.validator = new Validator(this.document, this.texts);
  }

  get root(): SchemaNode {
    return this.document.root;
  }

  /** @throws SchemaTooComplexError when it would take more than the budget has */
  checkText(text: string, budget?: WorkBudget): CheckFailure | undefined {
    const parsed = parseAnswer(text);
    return "failure" in parsed ? parsed.failure : this.checkValue(parsed.value, budget);
  }

  /** @throws SchemaTooComplexError when it would take more than the budget has */
  checkValue(value: unknown, budget?: WorkBudget): CheckFailure | undefined {
    const misfit = this.validator.validate(this.root, value, budget);
    if (misfit === undefined) return undefined;
    const path = misfit.at.join(".");
    const where = path === "" ? "The answer" : `The answer's ${path}`;
    const node = misfit.node && this.document.pathOf(misfit.node);
    const keyword = node ? `${node}.${misfit.keyword}` : misfit.keyword;
    return { path, keyword: misfit.keyword, message: `${where} does not fit ${keyword} of the schema.` };
  }
}

/** Reads an answer. The grammar has made it JSON, unless it was cut off. */
export function parseAnswer(text: string): { readonly value: unknown } | { readonly failure: CheckFailure } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { failure: { path: "", keyword: "json", message: "The answer is not complete JSON." } };
  }
}
