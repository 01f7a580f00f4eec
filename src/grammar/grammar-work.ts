import {
  type CallableTool,
  checkAgainstCalls,
  checkAgainstSchema,
  type CheckFailure,
  compileCalls,
  type CompileOptions,
  compileSchema,
} from "./compile-grammar.ts";
import { continueGrammar } from "./gbnf/continue-grammar.ts";
import {
  DEFAULT_STEPS,
  GrammarSyntaxError,
  SchemaError,
  type SchemaGap,
  SchemaTooComplexError,
  WorkBudget,
} from "./schema-errors.ts";
import { textGrammar, TextGrammarError, type TextLanguage } from "./text-grammar.ts";
import { toLlamaSchema, type LlamaSchema } from "./to-llama-schema.ts";

/** Schemas that an answer has to fit. */
export type SchemaWork =
  | { readonly kind: "schema"; readonly schema: unknown }
  | { readonly kind: "calls"; readonly tools: readonly CallableTool[]; readonly answer?: unknown };

/**
 * Input of {@link compileGrammar}: source of a grammar, or a task about one. Inputs and results can be sent between
 * threads.
 */
export type GrammarWork =
  | SchemaWork
  | {
      readonly kind: "texts";
      readonly language: TextLanguage;
      readonly source: string | readonly string[];
    }
  /** Grammar of the text that may follow after a given beginning. */
  | { readonly kind: "rest"; readonly grammar: string; readonly beginning: string }
  /** Schemas that llama.cpp converts to grammars itself. */
  | { readonly kind: "llama"; readonly schemas: readonly unknown[] }
  /** Complete answer to check. */
  | { readonly kind: "check"; readonly against: SchemaWork; readonly text: string };

export type GrammarResult =
  | CompiledText
  | SchemaRefusal
  | { readonly kind: "unsayable"; readonly message: string }
  /** Keywords of each schema that llama.cpp's grammar does not enforce. */
  | { readonly kind: "llama"; readonly missing: readonly MissingKeywords[] }
  /** Result of a check; undefined: the answer fits. */
  | { readonly kind: "checked"; readonly failure: CheckFailure | undefined };

export type MissingKeywords = Pick<LlamaSchema, "dropped" | "ignored">;

interface CompiledText {
  readonly kind: "made";
  /** Grammar in GBNF; undefined if the continuation is unknown, or no text of the grammar has this beginning. */
  readonly grammar: string | undefined;
  /** Keywords that the grammar does not enforce. */
  readonly unenforced: readonly (SchemaGap & { readonly tool?: string | undefined })[];
}

/** Fields of a {@link SchemaError}. */
interface SchemaRefusal extends Pick<SchemaError, "reason" | "path" | "keyword" | "tool"> {
  readonly kind: "refused";
}

/**
 * Objects have only declared properties unless their schema allows others, like in llama.cpp: small models write
 * better.
 */
const OPTIONS: CompileOptions = { allowsUndeclared: false };

/** Steps of {@link WorkBudget} for quick work: a millisecond or two, enough for most schemas of agents. */
const QUICK_STEPS = 2000;
/** Most characters of quick work: longer inputs take long before the first step is counted. */
const MAX_QUICK_LENGTH = 8192;
/** Most characters of quick work of kind llama, whose steps are not counted: it takes up to 50 ms. */
const MAX_QUICK_LLAMA_LENGTH = 32 * 1024;

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
  try {
    return compileWithin(work, { ...OPTIONS, steps: QUICK_STEPS, isSingleTry: true });
  } catch (error) {
    if (error instanceof SchemaTooComplexError) return undefined;
    throw error;
  }
}

/** Returns the grammar of a result. @throws SchemaError, TextGrammarError for a result without one */
export function compiledGrammar(result: GrammarResult): CompiledText {
  if (result.kind === "made") return result;
  if (result.kind === "unsayable") throw new TextGrammarError(result.message);
  if (result.kind === "refused") throw new SchemaError(result.reason, result);
  throw new TypeError("There is no grammar in this result.");
}

function compileWithin(
  work: GrammarWork,
  options: CompileOptions & { readonly steps: number },
): GrammarResult {
  if (work.kind === "rest") return { kind: "made", grammar: compileRest(work, options), unenforced: [] };
  if (work.kind === "texts") return compileTexts(work, options);
  if (work.kind === "check") return checkAnswer(work, options);
  if (work.kind === "llama") return { kind: "llama", missing: work.schemas.map(missingKeywordsOf) };
  try {
    // The functions are left out, as they cannot be sent to another thread.
    const { grammar, unenforced }: Pick<CompiledText, "unenforced"> & { readonly grammar: string } =
      work.kind === "calls"
        ? compileCalls(work.tools, work.answer, options)
        : compileSchema(work.schema, options);
    return { kind: "made", grammar, unenforced };
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    const { reason, path, keyword, tool } = error;
    return { kind: "refused", reason, path, keyword, tool };
  }
}

function checkAnswer(
  { against: by, text }: Extract<GrammarWork, { kind: "check" }>,
  { steps, isSingleTry: isOneTry }: CompileOptions & { readonly steps: number },
): GrammarResult {
  const budget = new WorkBudget(steps);
  try {
    if (isOneTry === true && TEXT_KEYWORDS.test(JSON.stringify(by)))
      throw new SchemaTooComplexError("it has patterns or formats");
    const failure =
      by.kind === "calls" ? checkAgainstCalls(by, text, budget) : checkAgainstSchema(by.schema, text, budget);
    return { kind: "checked", failure };
  } catch (error) {
    // Chains of thousands of references exhaust the stack.
    const isTooComplex = error instanceof SchemaTooComplexError || error instanceof RangeError;
    if (!isTooComplex) throw error;
    if (isOneTry === true) throw new SchemaTooComplexError("it takes longer");
    return { kind: "unsayable", message: error.message };
  }
}

function missingKeywordsOf(schema: unknown): MissingKeywords {
  const { dropped, ignored: lost } = toLlamaSchema(schema);
  return { dropped, ignored: lost };
}

function compileTexts(
  { language, source }: Extract<GrammarWork, { kind: "texts" }>,
  { steps, isSingleTry: isOneTry }: CompileOptions & { readonly steps: number },
): GrammarResult {
  try {
    return { kind: "made", grammar: textGrammar(language, source, new WorkBudget(steps)), unenforced: [] };
  } catch (error) {
    if (!(error instanceof TextGrammarError)) throw error;
    if (isOneTry === true && error.cause instanceof SchemaTooComplexError) throw error.cause;
    return { kind: "unsayable", message: error.message };
  }
}

function compileRest(
  { grammar, beginning }: Extract<GrammarWork, { kind: "rest" }>,
  { steps, isSingleTry: isOneTry }: CompileOptions & { readonly steps: number },
): string | undefined {
  try {
    return continueGrammar(grammar, beginning, new WorkBudget(steps));
  } catch (error) {
    // Errors in a grammar of the client are reported by the engine.
    const isUnknown = error instanceof GrammarSyntaxError || error instanceof SchemaTooComplexError;
    if (isUnknown && isOneTry !== true) return undefined;
    if (error instanceof GrammarSyntaxError) return undefined;
    throw error;
  }
}

function lengthOf(work: GrammarWork): number {
  if (work.kind === "rest") return work.grammar.length + work.beginning.length;
  return JSON.stringify(work).length;
}
