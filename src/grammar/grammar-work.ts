import {
  type CallableTool,
  checkByCalls,
  checkBySchema,
  type CheckFailure,
  compileCalls,
  type CompileOptions,
  compileSchema,
} from "./compile-grammar.ts";
import { continueGrammar } from "./gbnf/continue-grammar.ts";
import {
  DEFAULT_WORK,
  GrammarSyntaxError,
  SchemaError,
  type SchemaGap,
  SchemaTooComplexError,
  WorkBudget,
} from "./schema-errors.ts";
import { textGrammar, TextGrammarError, type TextLanguage } from "./text-grammar.ts";
import { toLlamaSchema, type LlamaSchema } from "./to-llama-schema.ts";

/** What an answer must be by schemas. */
export type SchemaWork =
  | { readonly kind: "schema"; readonly schema: unknown }
  | { readonly kind: "calls"; readonly tools: readonly CallableTool[]; readonly answer?: unknown };

/**
 * What a grammar is to be made of, or what is to be done beside one. It can be sent to another thread, as its result can be
 * sent back.
 */
export type GrammarWork =
  | SchemaWork
  | {
      readonly kind: "texts";
      readonly language: TextLanguage;
      readonly given: string | readonly string[];
    }
  /** What may follow in a grammar after a beginning that was already written. */
  | { readonly kind: "rest"; readonly grammar: string; readonly beginning: string }
  /** Of which llama.cpp makes the grammars. */
  | { readonly kind: "llama"; readonly schemas: readonly unknown[] }
  /** A whole answer to be checked. */
  | { readonly kind: "check"; readonly by: SchemaWork; readonly text: string };

export type GrammarResult =
  | MadeGrammar
  | Refusal
  | { readonly kind: "unsayable"; readonly message: string }
  /** Of each schema, what llama.cpp's grammar of it does not have. */
  | { readonly kind: "llama"; readonly missing: readonly MissingKeywords[] }
  /** What is wrong with the answer; undefined: it fits. */
  | { readonly kind: "checked"; readonly failure: CheckFailure | undefined };

export type MissingKeywords = Pick<LlamaSchema, "dropped" | "lost">;

interface MadeGrammar {
  readonly kind: "made";
  /** In GBNF. Undefined: the rest cannot be told, or no text of the grammar begins so. */
  readonly grammar: string | undefined;
  /** What a schema says and the grammar does not. */
  readonly unenforced: readonly (SchemaGap & { readonly tool?: string | undefined })[];
}

/** A {@link SchemaError}, field by field. */
interface Refusal extends Pick<SchemaError, "reason" | "path" | "keyword" | "tool"> {
  readonly kind: "refused";
}

/** As llama.cpp has it, an object has no properties beside declared ones unless its schema says so: small models write better. */
const OPTIONS: CompileOptions = { allowsOthers: false };

/** Steps of {@link WorkBudget} that are made at once: a millisecond or two, enough for most schemas of agents. */
const FEW_STEPS = 2000;
/** Longer texts take long before the first step is counted. */
const SHORT = 8192;
/** Nothing counts the steps of llama.cpp's schemas, which take no more than some 50 ms for as many characters. */
const SHORT_OF_LLAMA = 32 * 1024;

/** Subschemas and values that meet in the check of an answer: each takes some 5 µs, and 300 bytes until the check is over. */
const CHECK_WORK = 1_000_000;

/** Keywords of which each has a budget of its own in a check. */
const HAS_TEXTS = /"(?:pattern|patternProperties|format)":/;

/** Makes a grammar, which may take a second, or checks an answer, which may take a few. */
export function makeGrammar(work: GrammarWork): GrammarResult {
  return make(work, { ...OPTIONS, steps: work.kind === "check" ? CHECK_WORK : DEFAULT_WORK });
}

/** The same where it takes little time; undefined elsewhere. */
export function makeQuickly(work: GrammarWork): GrammarResult | undefined {
  if (lengthOf(work) > (work.kind === "llama" ? SHORT_OF_LLAMA : SHORT)) return undefined;
  try {
    return make(work, { ...OPTIONS, steps: FEW_STEPS, isOneTry: true });
  } catch (error) {
    if (error instanceof SchemaTooComplexError) return undefined;
    throw error;
  }
}

/** @throws SchemaError, TextGrammarError what another thread has found */
export function made(result: GrammarResult): MadeGrammar {
  if (result.kind === "made") return result;
  if (result.kind === "unsayable") throw new TextGrammarError(result.message);
  if (result.kind === "refused") throw new SchemaError(result.reason, result);
  throw new TypeError("There is no grammar in this result.");
}

function make(work: GrammarWork, options: CompileOptions & { readonly steps: number }): GrammarResult {
  if (work.kind === "rest") return { kind: "made", grammar: restOf(work, options), unenforced: [] };
  if (work.kind === "texts") return textsOf(work, options);
  if (work.kind === "check") return checkOf(work, options);
  if (work.kind === "llama") return { kind: "llama", missing: work.schemas.map(missingOf) };
  try {
    // Without the functions, which cannot be sent.
    const { grammar, unenforced }: Pick<MadeGrammar, "unenforced"> & { readonly grammar: string } =
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

function checkOf(
  { by, text }: Extract<GrammarWork, { kind: "check" }>,
  { steps, isOneTry }: CompileOptions & { readonly steps: number },
): GrammarResult {
  const budget = new WorkBudget(steps);
  try {
    if (isOneTry === true && HAS_TEXTS.test(JSON.stringify(by)))
      throw new SchemaTooComplexError("it has patterns or formats");
    const failure =
      by.kind === "calls" ? checkByCalls(by, text, budget) : checkBySchema(by.schema, text, budget);
    return { kind: "checked", failure };
  } catch (error) {
    // References that lead to references by the thousand exhaust the stack.
    const isTooComplex = error instanceof SchemaTooComplexError || error instanceof RangeError;
    if (!isTooComplex) throw error;
    if (isOneTry === true) throw new SchemaTooComplexError("it takes longer");
    return { kind: "unsayable", message: error.message };
  }
}

function missingOf(schema: unknown): MissingKeywords {
  const { dropped, lost } = toLlamaSchema(schema);
  return { dropped, lost };
}

function textsOf(
  { language, given }: Extract<GrammarWork, { kind: "texts" }>,
  { steps, isOneTry }: CompileOptions & { readonly steps: number },
): GrammarResult {
  try {
    return { kind: "made", grammar: textGrammar(language, given, new WorkBudget(steps)), unenforced: [] };
  } catch (error) {
    if (!(error instanceof TextGrammarError)) throw error;
    if (isOneTry === true && error.cause instanceof SchemaTooComplexError) throw error.cause;
    return { kind: "unsayable", message: error.message };
  }
}

function restOf(
  { grammar, beginning }: Extract<GrammarWork, { kind: "rest" }>,
  { steps, isOneTry }: CompileOptions & { readonly steps: number },
): string | undefined {
  try {
    return continueGrammar(grammar, beginning, new WorkBudget(steps));
  } catch (error) {
    // The engine has the last word on a grammar of the user's.
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
