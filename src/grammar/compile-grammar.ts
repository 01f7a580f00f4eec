import { GrammarWriter } from "./gbnf/grammar-writer.ts";
import { ValueBuilder } from "./build/build-value.ts";
import { BLANK, choice, type Part, SEPARATOR, sequence, SPACE, text as partText } from "./build/part.ts";
import { PartWriter } from "./build/write-parts.ts";
import { isObject, type JsonSchema, type SchemaNode } from "./json-schema.ts";
import { isKeyword } from "./keywords.ts";
import { SchemaDocument } from "./schema-document.ts";
import {
  DEFAULT_WORK,
  SchemaError,
  type SchemaGap,
  SchemaTooComplexError,
  WorkBudget,
} from "./schema-errors.ts";
import { Expander } from "./terms/expand.ts";
import { type Conjunction, holds } from "./terms/term.ts";
import { TextRules } from "./text-rules.ts";
import { Validator } from "./validate.ts";

/** A schema as a grammar for llama.cpp, with what is left to check. */
export interface CompiledSchema {
  /** GBNF. Its root is one JSON value without space around it. */
  readonly grammar: string;
  /** What the schema says and the grammar does not. */
  readonly unenforced: readonly SchemaGap[];
  /** What is wrong with an answer, first of all whether it is JSON; undefined if it fits the whole schema. */
  readonly check: (text: string) => CheckFailure | undefined;
}

/**
 * Compiles a JSON Schema into a grammar that lets a model write only what fits it. Never reads anything but the schema.
 * @throws SchemaError for a schema that no value fits, or that is too large
 */
export function compileSchema(schema: unknown, options: CompileOptions = {}): CompiledSchema {
  const source = new SchemaSource(schema);
  const { grammar, gaps } = CompiledGrammar.of(options, [source], (compiled) =>
    compiled.fitting(source, [], "root-value"),
  );
  return { grammar, unenforced: gaps, check: (text) => source.checkText(text) };
}

/**
 * What is wrong with an answer to a schema.
 * @throws SchemaTooComplexError when it would take more than the budget has
 */
export function checkBySchema(schema: unknown, text: string, budget: WorkBudget): CheckFailure | undefined {
  return new SchemaSource(schema).checkText(text, budget);
}

/** A tool whose calls a grammar lets through. */
export interface CallableTool {
  readonly name: string;
  /** Schema of its arguments; any object if left out. */
  readonly parameters?: unknown;
}

interface CallGap extends SchemaGap {
  /** The tool whose parameters have the gap; undefined for the answer's schema. */
  readonly tool: string | undefined;
}

interface CompiledCalls {
  /** GBNF. Its root is one call `{"name": …, "arguments": {…}}`, or one answer. */
  readonly grammar: string;
  readonly unenforced: readonly CallGap[];
  /** What is wrong with a text of the grammar. */
  readonly check: (text: string) => CheckFailure | undefined;
  /** What is wrong with the arguments of one tool. */
  readonly checkArguments: (tool: string, text: string) => CheckFailure | undefined;
}

/** Arguments are always an object. */
const OBJECT: JsonSchema = { type: ["object"] };

/**
 * Compiles the calls of tools into one grammar. Each schema is on its own: a reference to its root stays in it.
 * @param answer schema of an answer that may come instead of a call
 * @throws SchemaError for a schema that no value fits, or that is too large
 */
export function compileCalls(
  tools: readonly CallableTool[],
  answer?: unknown,
  options: CompileOptions = {},
): CompiledCalls {
  const { tools: sources, answer: answerSource } = sourcesOf(tools, answer);
  const { grammar, gaps } = CompiledGrammar.of(options, [...sources.values()], (compiled) => {
    const parts = [...sources].map(([name, source]) =>
      callOf(name, compiled.fitting(source, [holds(OBJECT)], `${name}-arguments`)),
    );
    if (answerSource) parts.push(compiled.fitting(answerSource, [], "answer"));
    return choice(parts);
  });
  const checkArguments = (tool: string, value: string): CheckFailure | undefined =>
    sources.get(tool)?.checkText(value);
  return {
    grammar,
    unenforced: gaps,
    check: (value) => checkCall(value, sources, answerSource),
    checkArguments,
  };
}

/**
 * What is wrong with a text that is to be one call, or one answer.
 * @throws SchemaTooComplexError when it would take more than the budget has
 */
export function checkByCalls(
  { tools, answer }: { readonly tools: readonly CallableTool[]; readonly answer?: unknown },
  value: string,
  budget: WorkBudget,
): CheckFailure | undefined {
  const sources = sourcesOf(tools, answer);
  return checkCall(value, sources.tools, sources.answer, budget);
}

function sourcesOf(tools: readonly CallableTool[], answer: unknown) {
  return {
    tools: new Map(tools.map(({ name, parameters }) => [name, new SchemaSource(parameters ?? OBJECT, name)])),
    answer: answer === undefined ? undefined : new SchemaSource(answer),
  };
}

function callOf(name: string, value: Part): Part {
  return sequence(
    partText("{"),
    SPACE,
    partText('"name":'),
    BLANK,
    partText(JSON.stringify(name)),
    SEPARATOR,
    partText('"arguments":'),
    BLANK,
    value,
    SPACE,
    partText("}"),
  );
}

function checkCall(
  value: string,
  sources: ReadonlyMap<string, SchemaSource>,
  answer: SchemaSource | undefined,
  budget?: WorkBudget,
): CheckFailure | undefined {
  const parsed = parseAnswer(value);
  if ("failure" in parsed) return parsed.failure;
  const call = isObject(parsed.value) ? parsed.value : {};
  const source = typeof call.name === "string" ? sources.get(call.name) : undefined;
  const ofCall = source?.checkValue(call.arguments, budget);
  if (source && ofCall === undefined) return undefined;
  // An answer may look like a call.
  const ofAnswer = answer?.checkValue(parsed.value, budget);
  if (answer && ofAnswer === undefined) return undefined;
  return (
    ofCall ??
    ofAnswer ?? { path: "name", keyword: "enum", message: "The answer is not a call of a known tool." }
  );
}

export interface CompileOptions {
  /** Work that one try to compile may cost; there are up to five. */
  readonly steps?: number;
  /** Throws SchemaTooComplexError instead of a further try. */
  readonly isOneTry?: boolean;
  /**
   * Whether an object with declared properties may have others where its schema does not say so, as JSON Schema has it. Small
   * models write better without. Default: true.
   */
  readonly allowsOthers?: boolean;
}

/** How much of a schema is in its grammar: all, all but sets of texts, or only what needs no room. */
type Level = "full" | "no texts" | "coarse";

/** Tries with all but the patterns that took too long. */
const MAX_TRIES = 3;

interface ToolGap extends SchemaGap {
  readonly tool: string | undefined;
}

/** A grammar in the making: several schemas can be parts of it. */
class CompiledGrammar {
  readonly #budget: WorkBudget;
  readonly #level: Level;
  readonly #allowsOthers: boolean;
  readonly #gaps = new Map<string, ToolGap>();
  readonly #checks: { source: SchemaSource; part: Part; terms: Conjunction; expander: Expander }[] = [];
  readonly #writer = new GrammarWriter();

  private constructor(options: CompileOptions, level: Level) {
    this.#budget = new WorkBudget(options.steps ?? DEFAULT_WORK);
    this.#level = level;
    this.#allowsOthers = options.allowsOthers ?? true;
  }

  /**
   * Compiles what `build` makes of schemas. What is too large is tried again, with what needs room left to the check.
   * @throws SchemaError
   */
  static of(
    options: CompileOptions,
    sources: readonly SchemaSource[],
    build: (grammar: CompiledGrammar) => Part,
  ): { readonly grammar: string; readonly gaps: readonly ToolGap[] } {
    for (let level: Level = "full", tries = 1; ; tries += 1) {
      try {
        const compiled = new CompiledGrammar(options, level);
        const grammar = compiled.#write(build(compiled));
        return { grammar, gaps: [...compiled.#gaps.values(), ...compiled.#losses()] };
      } catch (error) {
        if (options.isOneTry && error instanceof RangeError)
          throw new SchemaTooComplexError("it is too deep");
        // Each optional property is a rule within the one before: so many exhaust the stack.
        if (error instanceof RangeError) {
          throw new SchemaError("The schema is too large: it has too many properties or levels.", {
            path: "",
            keyword: "",
          });
        }
        if (!(error instanceof SchemaTooComplexError) || options.isOneTry) throw error;
        if (level === "coarse") {
          throw new SchemaError(`The schema is too large: ${error.reason}.`, { path: "", keyword: "" });
        }
        // A single pattern that takes too long is left out alone.
        const isOnePattern = sources.some(({ texts }) => texts.current !== undefined);
        if (level === "no texts") level = "coarse";
        else if (!isOnePattern || tries >= MAX_TRIES) level = "no texts";
      }
    }
  }

  /** The values that fit a schema and further terms. */
  fitting(source: SchemaSource, further: Conjunction, hint: string): Part {
    const { document, texts, validator, tool } = source;
    texts.begin(this.#budget, this.#level !== "full");
    const parts = { document, texts, validator, budget: this.#budget, isCoarse: this.#level === "coarse" };
    const expander = new Expander(parts);
    const gap = (each: SchemaGap): void => {
      this.#gaps.set(JSON.stringify([tool, each.path, each.keyword, each.kind]), { ...each, tool });
    };
    const builder = new ValueBuilder({ ...parts, expander, allowsOthers: this.#allowsOthers, gap });
    const terms = [holds(source.root), ...further];
    const part = builder.value(terms, hint);
    this.#checks.push({ source, part, terms, expander });
    return part;
  }

  #losses(): ToolGap[] {
    return this.#checks.flatMap(({ source: { document, tool } }) =>
      document.losses.map((loss): ToolGap => ({ ...loss, kind: "ignored", tool })),
    );
  }

  #write(part: Part): string {
    const parts = new PartWriter(this.#writer, this.#budget);
    for (const { source, part: own, terms, expander } of this.#checks) {
      if (parts.canFit(own)) continue;
      throw findContradiction(source, terms, expander);
    }
    const term = parts.write(part) ?? '""';
    return this.#writer.toString(this.#writer.rule("start", term));
  }
}

/** Says where a schema that nothing fits contradicts itself, as closely as can be told. */
function findContradiction(source: SchemaSource, terms: Conjunction, expander: Expander): SchemaError {
  const { tool, document } = source;
  const inner = innermost(terms, expander, 0);
  const node = inner.map((term) => term.node).find((each) => typeof each === "object");
  const path = node ? document.pathOf(node) : "";
  const keyword = node ? (blamedKeyword(node, expander) ?? "") : "false";
  const where = path === "" ? "the schema" : path;
  const reason = keyword ? `${keyword} contradicts the rest` : "it refers to itself without end";
  return new SchemaError(`No value can fit ${where}: ${reason}.`, { path, keyword, tool });
}

/** Follows required properties that nothing fits. */
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

/** The keyword without which something would fit. */
function blamedKeyword(node: JsonSchema, expander: Expander): string | undefined {
  const names = Object.keys(node).filter(isKeyword);
  return names.toReversed().find((name) => {
    const rest = Object.fromEntries(Object.entries(node).filter(([other]) => other !== name));
    return !expander.isEmpty([holds(rest)]);
  });
}

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
class SchemaSource {
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
function parseAnswer(text: string): { readonly value: unknown } | { readonly failure: CheckFailure } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { failure: { path: "", keyword: "json", message: "The answer is not complete JSON." } };
  }
}
