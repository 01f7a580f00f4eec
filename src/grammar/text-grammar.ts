import { nextTimeSlice } from "../async/timers.ts";
import { GrammarWriter, MAX_GRAMMAR_LENGTH } from "./gbnf/grammar-writer.ts";
import { leftRecursiveRule, parseGbnfInSteps } from "./gbnf/parse-gbnf.ts";
import { RepetitionLimitError, toRegularPattern, UnenforceableError } from "./lark/regular-pattern.ts";
import { larkToGbnf } from "./lark/write-lark.ts";
import {
  GrammarSyntaxError,
  GrammarTokenError,
  NotRegularError,
  SchemaTooComplexError,
  WorkBudget,
} from "./schema-errors.ts";
import { MAX_LENGTH } from "./text/parse-pattern.ts";
import { TextSet } from "./text/text-set.ts";
import { writeString } from "./text/write-text.ts";

/** Error for a regular expression or grammar that has no equivalent in GBNF; the message completes "because". */
export class TextGrammarError extends Error {
  override readonly name = "TextGrammarError";
}

/** Source language of a grammar. */
export type TextLanguage = "regex" | "choice" | "lark";

/**
 * Compiles a regular expression, a list of texts, or a Lark grammar to GBNF.
 * @throws TextGrammarError
 */
export function textGrammar(
  language: TextLanguage,
  source: string | readonly string[],
  budget: WorkBudget = new WorkBudget(),
): string {
  return withExplanation(() => {
    if (typeof source !== "string") return writeTexts(TextSet.oneOf(source, budget));
    return language === "lark" ? larkToGbnf(source, budget) : regexGrammar(source, budget);
  });
}

/**
 * Compiles a regular expression of Python, Rust or ECMAScript, which has to match the complete text.
 * @throws TextGrammarError
 */
function regexGrammar(expression: string, budget: WorkBudget): string {
  // The limit is checked again after rewriting, which may drop the names of groups.
  if (expression.length > 2 * MAX_LENGTH)
    throw new TextGrammarError(`it is longer than ${MAX_LENGTH} characters`);
  return writeTexts(TextSet.pattern(toPattern(expression), budget));
}

/** True if a grammar as accepted by vLLM is in GBNF; otherwise it is in Lark. */
export function isGbnf(definition: string): boolean {
  return definition.includes("::=");
}

/**
 * Converts a GBNF grammar as accepted by vLLM, in which names may have underscores.
 * @throws TextGrammarError
 */
export function anyGbnf(definition: string): string {
  return checkedGbnf(withoutUnderscores(definition));
}

/**
 * Checks that llama.cpp can parse a GBNF grammar and starts it fast; returns it unchanged. A long grammar also has to
 * be parsed by {@link checkLongGbnf}.
 * @throws TextGrammarError
 */
export function checkedGbnf(definition: string): string {
  if (definition.length > MAX_GRAMMAR_LENGTH)
    throw new TextGrammarError(`it has more than ${MAX_GRAMMAR_LENGTH} characters`);
  let choices = 0;
  for (const [part] of definition.matchAll(CHOICES)) choices += /^[|?*+]$/.test(part) ? 1 : maxRepeats(part);
  if (choices > MAX_CHOICES)
    throw new TextGrammarError(`it has more than ${MAX_CHOICES} alternatives and repetitions`);
  if (definition.length > LONG_GRAMMAR_LENGTH) return definition;
  const steps = checkInSteps(definition);
  while (!steps.next().done);
  return definition;
}

/**
 * Parses a long grammar for {@link checkedGbnf} in time slices, so that it does not block other requests.
 * @throws TextGrammarError
 */
export async function checkLongGbnf(definition: string): Promise<void> {
  if (definition.length <= LONG_GRAMMAR_LENGTH) return;
  const steps = checkInSteps(definition);
  while (!steps.next().done) await nextTimeSlice();
}

/** Checks a grammar; one that names tokens is left to the engine. */
function* checkInSteps(definition: string): Generator<void, void, void> {
  try {
    const grammar = yield* parseGbnfInSteps(definition);
    yield;
    const recursive = leftRecursiveRule(grammar);
    if (recursive === undefined) return;
    throw new TextGrammarError(`its rule ${JSON.stringify(recursive.slice(0, 100))} begins with itself`);
  } catch (error) {
    if (error instanceof GrammarTokenError) return;
    if (error instanceof GrammarSyntaxError) throw new TextGrammarError(error.message, { cause: error });
    throw error;
  }
}

function maxRepeats(part: string): number {
  return part.startsWith("{") ? Math.max(...part.slice(1, -1).split(",").map(Number)) : 0;
}

/** Accepts the syntax of Python and Rust, or else of ECMAScript; what they share means the same. */
function toPattern(expression: string): string {
  try {
    return `^(?:${toRegularPattern(expression)})$`;
  } catch (error) {
    const isSyntax = error instanceof UnenforceableError && !(error instanceof RepetitionLimitError);
    if (!isSyntax || !isEcmaScript(expression)) throw error;
    return `^(?:${expression})$`;
  }
}

function isEcmaScript(expression: string): boolean {
  try {
    return new RegExp(expression, "u").source !== "";
  } catch {
    return false;
  }
}

function writeTexts(texts: TextSet): string {
  if (texts.isEmpty()) throw new UnenforceableError("matches no text");
  const writer = new GrammarWriter();
  return writer.toString(writeString(writer, texts, { form: "raw", hint: "text" }));
}

/** Most characters of a grammar that is parsed at once; longer ones are parsed in time slices. */
const LONG_GRAMMAR_LENGTH = 8192;

/** Most alternatives and repetitions: each may be an initial state, and llama.cpp compares all pairs of those. */
const MAX_CHOICES = 8_192;
/**
 * Matches literals, classes and comments, and operators that make choices. Unterminated literals and classes match as
 * well; otherwise the rest of the grammar would be searched from each of them.
 */
const CHOICES = /"(?:\\.|[^"\\\n])*"?|\[(?:\\.|[^\]\\\n])*\]?|#[^\n]*|[|?*+]|\{[\d,\s]*\}/g;

/** Matches literals, classes and comments, which stay unchanged, and names. */
const PARTS = /"(?:\\.|[^"\\\n])*"?|\[(?:\\.|[^\]\\\n])*\]?|#[^\n]*|([a-zA-Z][\w-]*)/g;

function withoutUnderscores(definition: string): string {
  const names = new Set([...definition.matchAll(PARTS)].flatMap(([, name]) => name ?? []));
  const taken = new Set([...names].filter((name) => !name.includes("_")));
  const renamed = new Map<string, string>();
  for (const name of names) {
    if (!name.includes("_")) continue;
    let free = name.replaceAll("_", "-");
    while (taken.has(free)) free += "-";
    taken.add(free);
    renamed.set(name, free);
  }
  return definition.replaceAll(PARTS, (part, name?: string) => renamed.get(name ?? "") ?? part);
}

function withExplanation(write: () => string): string {
  try {
    return write();
  } catch (error) {
    if (error instanceof UnenforceableError)
      throw new TextGrammarError(`it ${error.message}`, { cause: error });
    if (error instanceof NotRegularError || error instanceof SchemaTooComplexError)
      throw new TextGrammarError(error.reason, { cause: error });
    throw error;
  }
}
