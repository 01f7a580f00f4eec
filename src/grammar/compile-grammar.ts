import { isRecord } from "../json/json-values.ts";
import { GrammarWriter } from "./gbnf/grammar-writer.ts";
import { ValueBuilder } from "./build/build-value.ts";
import { choice, enclosed, literalOf, member, type Part } from "./build/part.ts";
import { PartWriter } from "./build/write-parts.ts";
import type { JsonSchema } from "./json-schema.ts";
import { isKeyword } from "./keywords.ts";
import { SchemaDocument } from "./schema-document.ts";
import {
  DEFAULT_STEPS,
  type IgnoredKeyword,
  SchemaError,
  SchemaTooComplexError,
  WorkBudget,
} from "./schema-errors.ts";
import type { Gap } from "./terms/branch.ts";
import { Expander } from "./terms/expand.ts";
import { type Conjunction, holds } from "./terms/term.ts";
import { TextRules } from "./text-rules.ts";
import { Validator } from "./validate.ts";

/** Keyword that is neither enforced nor checked. */
export interface UnenforcedKeyword extends IgnoredKeyword {
  /** Tool whose parameters have the keyword; undefined for the answer's schema. */
  readonly tool: string | undefined;
}

interface CompiledGrammar {
  /** Grammar in GBNF. */
  readonly grammar: string;
  readonly ignored: readonly UnenforcedKeyword[];
  /** Keywords that are left to the check of the answer. */
  readonly checked: readonly string[];
}

/**
 * Compiles a JSON Schema to a grammar, whose root is one JSON value without space around it. References outside the schema
 * are never fetched.
 * @throws SchemaError for a schema that no value fits, or that is too large
 */
export function compileSchema(schema: unknown, options: CompileOptions = {}): CompiledGrammar {
  const source = new SchemaSource(schema);
  return GrammarCompiler.compile(options, [source], (compiler) =>
    compiler.compileSource(source, [], "root-value"),
  );
}

/**
 * Checks an answer against a schema; returns undefined if it fits.
 * @throws SchemaTooComplexError if the budget is exhausted
 */
export function checkAgainstSchema(
  schema: unknown,
  text: string,
  budget?: WorkBudget,
): CheckFailure | undefined {
  const parsed = parseAnswer(text);
  return "failure" in parsed ? parsed.failure : new SchemaSource(schema).check(parsed.value, budget);
}

/** Tool whose calls a grammar allows. */
export interface CallableTool {
  readonly name: string;
  /** Schema of its arguments; absent: any object. */
  readonly parameters?: unknown;
}

/** Schema of any arguments. */
const OBJECT: JsonSchema = { type: ["object"] };

/**
 * Compiles the calls of tools to one grammar, whose root is a call `{"name": …, "arguments": {…}}` or an answer. References
 * are resolved within each tool's schema.
 * @param answer schema of an answer that is allowed instead of a call
 * @throws SchemaError for a schema that no value fits, or that is too large
 */
export function compileCalls(
  tools: readonly CallableTool[],
  answer?: unknown,
  options: CompileOptions = {},
): CompiledGrammar {
  const { tools: sources, answer: answerSource } = sourcesOf(tools, answer);
  return GrammarCompiler.compile(options, [...sources.values()], (compiler) => {
    const parts = [...sources].map(([name, source]) =>
      callPart(name, compiler.compileSource(source, [holds(OBJECT)], `${name}-arguments`)),
    );
    if (answerSource) parts.push(compiler.compileSource(answerSource, [], "answer"));
    return choice(parts);
  });
}

function sourcesOf(tools: readonly CallableTool[], answer: unknown) {
  return {
    tools: new Map(tools.map(({ name, parameters }) => [name, new SchemaSource(parameters ?? OBJECT, name)])),
    answer: answer === undefined ? undefined : new SchemaSource(answer),
  };
}

function callPart(name: string, value: Part): Part {
  return enclosed("{", [member("name", literalOf(name)), member("arguments", value)], "}");
}

/**
 * Checks a text that has to be one call or one answer; returns undefined if it fits.
 * @throws SchemaTooComplexError if the budget is exhausted
 */
export function checkAgainstCalls(
  { tools, answer }: { readonly tools: readonly CallableTool[]; readonly answer?: unknown },
  text: string,
  budget?: WorkBudget,
): CheckFailure | undefined {
  const parsed = parseAnswer(text);
  if ("failure" in parsed) return parsed.failure;
  const sources = sourcesOf(tools, answer);
  const call = isRecord(parsed.value) ? parsed.value : {};
  const source = typeof call.name === "string" ? sources.tools.get(call.name) : undefined;
  const callFailure = source?.check(call.arguments, budget);
  if (source && callFailure === undefined) return undefined;
  // An answer may look like a call.
  const answerFailure = sources.answer?.check(parsed.value, budget);
  if (sources.answer && answerFailure === undefined) return undefined;
  return (
    callFailure ??
    answerFailure ?? { path: "name", keyword: "enum", message: "The answer is not a call of a known tool." }
  );
}

export interface CompileOptions {
  /** Steps per attempt; there are up to five attempts. */
  readonly steps?: number;
  /** Throws SchemaTooComplexError instead of another attempt. */
  readonly isSingleTry?: boolean;
  /**
   * True: objects may have undeclared properties unless the schema forbids them, as in JSON Schema. Small models write
   * better without. Default: true.
   */
  readonly allowsUndeclared?: boolean;
}

/** How much of a schema is in its grammar: all, all but patterns and formats, or only what is small. */
type Precision = "full" | "no texts" | "coarse";

/** Most attempts at full precision, each without the patterns that took too long before. */
const MAX_TRIES = 3;

/** Compilation of one or several schemas to one grammar. */
class GrammarCompiler {
  readonly #budget: WorkBudget;
  readonly #level: Precision;
  readonly #allowsUndeclared: boolean;
  readonly #ignored = new Map<string, UnenforcedKeyword>();
  readonly #checked = new Set<string>();
  readonly #checks: { source: SchemaSource; part: Part; terms: Conjunction; expander: Expander }[] = [];
  readonly #writer = new GrammarWriter();

  private constructor(options: CompileOptions, level: Precision) {
    this.#budget = new WorkBudget(options.steps ?? DEFAULT_STEPS);
    this.#level = level;
    this.#allowsUndeclared = options.allowsUndeclared ?? true;
  }

  /**
   * Compiles the part that `build` returns. If it is too large, it is compiled again with more keywords left to the
   * check.
   * @throws SchemaError
   */
  static compile(
    options: CompileOptions,
    sources: readonly SchemaSource[],
    build: (compiler: GrammarCompiler) => Part,
  ): CompiledGrammar {
    for (let level: Precision = "full", tries = 1; ; tries += 1) {
      try {
        const compiled = new GrammarCompiler(options, level);
        const grammar = compiled.#write(build(compiled));
        return { grammar, ignored: compiled.#allIgnored(), checked: [...compiled.#checked] };
      } catch (error) {
        if (options.isSingleTry && error instanceof RangeError)
          throw new SchemaTooComplexError("it is too deep");
        // Each optional property is a rule inside the previous one, so thousands of them exhaust the stack.
        if (error instanceof RangeError) {
          throw new SchemaError("The schema is too large: it has too many properties or levels.", {
            path: "",
            keyword: "",
          });
        }
        if (!(error instanceof SchemaTooComplexError) || options.isSingleTry) throw error;
        if (level === "coarse") {
          throw new SchemaError(`The schema is too large: ${error.message}.`, { path: "", keyword: "" });
        }
        // A pattern that takes too long is left out first.
        const isOnePattern = sources.some(({ texts }) => texts.current !== undefined);
        if (level === "no texts") level = "coarse";
        else if (!isOnePattern || tries >= MAX_TRIES) level = "no texts";
      }
    }
  }

  /** Builds the values that fit a schema and further terms. */
  compileSource(source: SchemaSource, further: Conjunction, hint: string): Part {
    const { document, texts, validator, tool } = source;
    texts.begin(this.#budget, this.#level !== "full");
    const parts = { document, texts, validator, budget: this.#budget, isCoarse: this.#level === "coarse" };
    const expander = new Expander(parts);
    const reportGap = (gap: Gap): void => {
      if (typeof gap === "string") this.#checked.add(gap);
      else this.#ignored.set(JSON.stringify([tool, gap.path, gap.keyword]), { ...gap, tool });
    };
    const builder = new ValueBuilder({
      ...parts,
      expander,
      allowsUndeclared: this.#allowsUndeclared,
      reportGap,
    });
    const terms = [holds(document.root), ...further];
    const part = builder.value(terms, hint);
    this.#checks.push({ source, part, terms, expander });
    return part;
  }

  #allIgnored(): UnenforcedKeyword[] {
    const invalid = this.#checks.flatMap(({ source: { document, tool } }) =>
      document.ignored.map((keyword) => ({ ...keyword, tool })),
    );
    return [...this.#ignored.values(), ...invalid];
  }

  #write(part: Part): string {
    const parts = new PartWriter(this.#writer);
    for (const { source, part: own, terms, expander } of this.#checks) {
      if (parts.isSatisfiable(own, this.#budget)) continue;
      throw findContradiction(source, terms, expander);
    }
    const term = parts.isSatisfiable(part, this.#budget) ? parts.write(part) : '""';
    return this.#writer.toString(this.#writer.rule("start", term));
  }
}

/** Finds the part of an unsatisfiable schema that contradicts itself, as precisely as possible. */
function findContradiction(source: SchemaSource, terms: Conjunction, expander: Expander): SchemaError {
  const { tool, document } = source;
  const inner = innermost(terms, expander, 0);
  const node = inner.map((term) => term.node).find((each) => typeof each === "object");
  const path = node ? document.pathOf(node) : "";
  const keyword = node ? (contradictingKeyword(node, expander) ?? "") : "false";
  const where = path === "" ? "the schema" : path;
  const reason = keyword ? `${keyword} contradicts the rest` : "it refers to itself without end";
  return new SchemaError(`No value can fit ${where}: ${reason}.`, { path, keyword, tool });
}

/** Follows required properties that no value fits. */
function innermost(terms: Conjunction, expander: Expander, depth: number): Conjunction {
  if (depth > 20) return terms;
  const [first, ...others] = terms;
  if (!first || others.some(({ node }) => typeof node === "object" && Object.keys(node).length > 1))
    return terms;
  if (typeof first.node === "boolean" || !first.holds) return terms;
  const { properties, required } = first.node;
  if (typeof properties !== "object" || properties === null || !Array.isArray(required)) return terms;
  for (const [name, node] of Object.entries(properties)) {
    if (required.includes(name) && expander.isEmpty([holds(node)]))
      return innermost([holds(node)], expander, depth + 1);
  }
  return terms;
}

/** Finds the keyword without which a value could fit. */
function contradictingKeyword(node: JsonSchema, expander: Expander): string | undefined {
  const names = Object.keys(node).filter(isKeyword);
  return names.toReversed().find((name) => {
    const rest = Object.fromEntries(Object.entries(node).filter(([other]) => other !== name));
    return !expander.isEmpty([holds(rest)]);
  });
}

/** First violation of a schema in an answer. */
export interface CheckFailure {
  /** Dotted path in the answer, "" for its root. */
  readonly path: string;
  /** Violated keyword; "json" if the answer is not JSON. */
  readonly keyword: string;
  /** One sentence without content of the answer. */
  readonly message: string;
}

/** Schema with the state for compiling it and checking answers. */
class SchemaSource {
  /** Tool whose arguments the schema describes. */
  readonly tool: string | undefined;
  readonly document: SchemaDocument;
  readonly texts = new TextRules();
  readonly validator: Validator;

  constructor(schema: unknown, tool?: string) {
    this.tool = tool;
    this.document = new SchemaDocument(schema);
    this.validator = new Validator(this.document, this.texts);
  }

  /** @throws SchemaTooComplexError if the budget is exhausted */
  check(value: unknown, budget?: WorkBudget): CheckFailure | undefined {
    const misfit = this.validator.validate(this.document.root, value, budget);
    if (misfit === undefined) return undefined;
    const path = misfit.at.join(".");
    const where = path === "" ? "The answer" : `The answer's ${path}`;
    const node = misfit.node && this.document.pathOf(misfit.node);
    const keyword = node ? `${node}.${misfit.keyword}` : misfit.keyword;
    return { path, keyword: misfit.keyword, message: `${where} does not fit ${keyword} of the schema.` };
  }
}

/** Parses an answer, which is JSON unless it was truncated. */
function parseAnswer(text: string): { readonly value: unknown } | { readonly failure: CheckFailure } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { failure: { path: "", keyword: "json", message: "The answer is not complete JSON." } };
  }
}
