import {
  type CallableTool,
  checkAgainstCalls,
  checkAgainstSchema,
  type CheckFailure,
  compileCalls,
  type CompileOptions,
  compileSchema,
  type UnenforcedKeyword,
} from "./compile-grammar.ts";
import { continueGrammar } from "./gbnf/continue-grammar.ts";
import {
  DEFAULT_STEPS,
  GrammarSyntaxError,
  SchemaError,
  SchemaTooComplexError,
  UnsupportedGrammarError,
  WorkBudget,
} from "./schema-errors.ts";
import { textGrammar, type TextLanguage, textPattern } from "./text-grammar.ts";
import { type LlamaSchema, toLlamaSchema } from "./to-llama-schema.ts";

export type { CheckFailure, LlamaSchema, TextLanguage, UnenforcedKeyword };

/** Schemas that an answer has to fit. */
export type SchemaWork =
  | { readonly kind: "schema"; readonly schema: unknown }
  | { readonly kind: "calls"; readonly tools: readonly CallableTool[]; readonly answer?: unknown };

/**
 * Input of {@link compileGrammar}: source of a grammar, or a task about one. Inputs and results can be sent between threads.
 */
export type GrammarWork =
  | SchemaWork
  | { readonly kind: "texts"; readonly language: TextLanguage; readonly source: string | readonly string[] }
  /** Grammar of a tool's text input, for the pattern of a JSON schema. */
  | { readonly kind: "pattern"; readonly language: "regex" | "lark"; readonly source: string }
  /** Grammar of the text that may follow after a given beginning. */
  | { readonly kind: "rest"; readonly grammar: string; readonly beginning: string }
  /** Schemas that templates show to the model, and llama.cpp converts to grammars itself. */
  | { readonly kind: "llama"; readonly schemas: readonly unknown[] }
  /** Complete answer to check. */
  | { readonly kind: "check"; readonly against: SchemaWork; readonly text: string };

export type GrammarResult =
  | CompiledText
  | SchemaRefusal
  | { readonly kind: "pattern"; readonly pattern: string }
  /** Error of other work than a schema, as part of a sentence: "it has a back-reference". */
  | { readonly kind: "unsayable"; readonly message: string }
  | { readonly kind: "llama"; readonly schemas: readonly LlamaSchema[] }
  /** Result of a check; undefined: the answer fits. */
  | { readonly kind: "checked"; readonly failure: CheckFailure | undefined };

interface CompiledText {
  readonly kind: "made";
  /** Grammar in GBNF; undefined if the continuation is unknown, or no text of the grammar has this beginning. */
  readonly grammar: string | undefined;
  /** Keywords that are neither enforced nor checked. */
  readonly ignored: readonly UnenforcedKeyword[];
  /** Keywords that are left to the check of the answer. */
  readonly checked: readonly string[];
}

/** Result for a grammar without a schema. */
const made = (grammar: string | undefined): CompiledText => ({
  kind: "made",
  grammar,
  ignored: [],
  checked: [],
});

/** Fields of a {@link SchemaError}. */
export interface SchemaRefusal extends Pick<SchemaError, "reason" | "path" | "keyword" | "tool"> {
  readonly kind: "refused";
}

interface StepOptions extends CompileOptions {
  readonly steps: number;
}

/** Objects have only declared properties unless their schema allows others, like in llama.cpp: small models write better. */
const OPTIONS: CompileOptions = { allowsUndeclared: false };

/** Steps of {@link WorkBudget} for quick work: a millisecond or two, enough for most schemas of agents. */
const QUICK_STEPS = 2000;
/** Most characters of quick work: longer inputs take long before the first step is counted. */
const MAX_QUICK_LENGTH = 8192;
/** Most characters of quick work of kind llama, of which only patterns count steps: it takes up to 50 ms. */
const MAX_QUICK_LLAMA_LENGTH = 32 * 1024;
/** Steps for all patterns of work of kind llama: a pattern has some 900, a long one of a tool's grammar 400,000. */
const LLAMA_STEPS = 600_000;
const QUICK_LLAMA_STEPS = 20_000;

/** Unicode properties in the JSON of work: finding the characters of one takes some 40 ms. */
const UNICODE_PROPERTY = /\\\\p\{/i;

/** Most pairs of a subschema and a value in the check of an answer: each takes some 5 µs and 300 bytes. */
const CHECK_STEPS = 1_000_000;

/** Keywords that have budgets of their own in a check, so that it may take long. */
const TEXT_KEYWORDS = /"(?:pattern|patternProperties|format)":/;

/** Compiles a grammar, which may take a second, or checks an answer, which may take a few seconds. Never throws. */
export function compileGrammar(work: GrammarWork): GrammarResult {
  return compileWithin(work, { ...OPTIONS, steps: work.kind === "check" ? CHECK_STEPS : DEFAULT_STEPS });
}

/** Like {@link compileGrammar}, but gives up after a few milliseconds and returns undefined. */
export function compileIfQuick(work: GrammarWork): GrammarResult | undefined {
  if (lengthOf(work) > (work.kind === "llama" ? MAX_QUICK_LLAMA_LENGTH : MAX_QUICK_LENGTH)) return undefined;
  if (UNICODE_PROPERTY.test(JSON.stringify(work))) return undefined;
  try {
    return compileWithin(work, { ...OPTIONS, steps: QUICK_STEPS, isSingleTry: true });
  } catch (error) {
    if (error instanceof SchemaTooComplexError) return undefined;
    throw error;
  }
}

function compileWithin(work: GrammarWork, options: StepOptions): GrammarResult {
  switch (work.kind) {
    case "texts":
    case "pattern":
      return compileTexts(work, options);
    case "rest":
      return made(compileRest(work, options));
    case "llama":
      return convertSchemas(work.schemas, options);
    case "check":
      return checkAnswer(work, options);
    default:
      return compileSchemas(work, options);
  }
}

function convertSchemas(schemas: readonly unknown[], { isSingleTry }: StepOptions): GrammarResult {
  const budget = new WorkBudget(isSingleTry === true ? QUICK_LLAMA_STEPS : LLAMA_STEPS);
  const converted = schemas.map((schema) => toLlamaSchema(schema, budget));
  if (isSingleTry === true && budget.left < 0) throw new SchemaTooComplexError("it has long patterns");
  return { kind: "llama", schemas: converted };
}

function compileSchemas(work: SchemaWork, options: StepOptions): GrammarResult {
  try {
    const compiled =
      work.kind === "calls"
        ? compileCalls(work.tools, work.answer, options)
        : compileSchema(work.schema, options);
    return { kind: "made", ...compiled };
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    const { reason, path, keyword, tool } = error;
    return { kind: "refused", reason, path, keyword, tool };
  }
}

function checkAnswer(
  { against, text }: Extract<GrammarWork, { kind: "check" }>,
  { steps, isSingleTry }: StepOptions,
): GrammarResult {
  const budget = new WorkBudget(steps);
  try {
    if (isSingleTry === true && TEXT_KEYWORDS.test(JSON.stringify(against)))
      throw new SchemaTooComplexError("it has patterns or formats");
    const failure =
      against.kind === "calls"
        ? checkAgainstCalls(against, text, budget)
        : checkAgainstSchema(against.schema, text, budget);
    return { kind: "checked", failure };
  } catch (error) {
    // Chains of thousands of references exhaust the stack.
    const isTooComplex = error instanceof SchemaTooComplexError || error instanceof RangeError;
    if (!isTooComplex) throw error;
    if (isSingleTry === true) throw new SchemaTooComplexError("it takes longer");
    return { kind: "unsayable", message: error.message };
  }
}

function compileTexts(
  work: Extract<GrammarWork, { kind: "texts" | "pattern" }>,
  { steps, isSingleTry }: StepOptions,
): GrammarResult {
  const budget = new WorkBudget(steps);
  try {
    return work.kind === "pattern"
      ? { kind: "pattern", pattern: textPattern(work.language, work.source, budget) }
      : made(textGrammar(work.language, work.source, budget));
  } catch (error) {
    // With all steps it may be small enough.
    if (isSingleTry === true && error instanceof Error && error.cause instanceof SchemaTooComplexError)
      throw error.cause;
    const isRefused =
      error instanceof UnsupportedGrammarError ||
      (error instanceof SchemaTooComplexError && isSingleTry !== true);
    if (!isRefused) throw error;
    return { kind: "unsayable", message: error.message };
  }
}

function compileRest(
  { grammar, beginning }: Extract<GrammarWork, { kind: "rest" }>,
  { steps, isSingleTry }: StepOptions,
): string | undefined {
  try {
    return continueGrammar(grammar, beginning, new WorkBudget(steps));
  } catch (error) {
    // Errors in a grammar of the client are reported by the engine.
    const isUnknown =
      error instanceof GrammarSyntaxError || (error instanceof SchemaTooComplexError && isSingleTry !== true);
    if (isUnknown) return undefined;
    throw error;
  }
}

function lengthOf(work: GrammarWork): number {
  if (work.kind === "rest") return work.grammar.length + work.beginning.length;
  return JSON.stringify(work).length;
}
