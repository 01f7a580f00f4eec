import { nextTimeSlice } from "../async/timers.ts";
import { GrammarWriter, MAX_GRAMMAR_LENGTH } from "./gbnf/grammar-writer.ts";
import { leftRecursiveRule, parseGbnfInSteps } from "./gbnf/parse-gbnf.ts";
import { TooOftenError, toRegularPattern, UnenforceableError } from "./lark/regular-pattern.ts";
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

/** What a text must be cannot be said as a grammar of llama.cpp. */
export class TextGrammarError extends Error {
  override readonly name = "TextGrammarError";
}

/** What the texts of a grammar are said in. */
export type TextLanguage = "regex" | "choice" | "lark";

/**
 * The texts of a regular expression, those of a list, or those of a grammar in the language of Lark, as a grammar of llama.cpp.
 * @throws TextGrammarError, whose message says why, after "because"
 */
export function textGrammar(
  language: TextLanguage,
  given: string | readonly string[],
  budget: WorkBudget = new WorkBudget(),
): string {
  return explained(() => {
    if (typeof given !== "string") return textsGrammar(TextSet.oneOf(given, budget));
    return language === "lark" ? larkToGbnf(given, budget) : regexGrammar(given, budget);
  });
}

/**
 * The whole texts that a regular expression of Python, Rust or ECMAScript matches, as a grammar of llama.cpp.
 * @throws TextGrammarError, whose message says why, after "because"
 */
function regexGrammar(expression: string, budget: WorkBudget): string {
  // Before it is rewritten, which leaves away the names of groups at most.
  if (expression.length > 2 * MAX_LENGTH)
    throw new TextGrammarError(`it is longer than ${MAX_LENGTH} characters`);
  return textsGrammar(TextSet.pattern(toPattern(expression), budget));
}

/** Whether a grammar as vLLM takes it is in GBNF; otherwise it is in the language of Lark. */
export function isGbnf(definition: string): boolean {
  return definition.includes("::=");
}

/**
 * A grammar in GBNF as vLLM takes it, in which names may have underscores.
 * @throws TextGrammarError
 */
export function anyGbnf(definition: string): string {
  return checkedGbnf(withoutUnderscores(definition));
}

/**
 * A grammar in GBNF as it is, unless llama.cpp cannot read it, or would take long to begin with it. Of a long one
 * {@link checkLongGbnf} has to say whether it can be read.
 * @throws TextGrammarError
 */
export function checkedGbnf(definition: string): string {
  if (definition.length > MAX_GRAMMAR_LENGTH)
    throw new TextGrammarError(`it has more than ${MAX_GRAMMAR_LENGTH} characters`);
  let choices = 0;
  for (const [part] of definition.matchAll(CHOICES)) choices += /^[|?*+]$/.test(part) ? 1 : timesOf(part);
  if (choices > MAX_CHOICES)
    throw new TextGrammarError(`it has more than ${MAX_CHOICES} alternatives and repetitions`);
  if (definition.length > LONG_GRAMMAR) return definition;
  const steps = checkInSteps(definition);
  while (!steps.next().done);
  return definition;
}

/**
 * What {@link checkedGbnf} leaves of a long grammar, in time slices, so that no other request waits for it.
 * @throws TextGrammarError
 */
export async function checkLongGbnf(definition: string): Promise<void> {
  if (definition.length <= LONG_GRAMMAR) return;
  const steps = checkInSteps(definition);
  while (!steps.next().done) await nextTimeSlice();
}

/** Naming tokens ends the check: about those the engine has the last word. */
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

function timesOf(part: string): number {
  return part.startsWith("{") ? Math.max(...part.slice(1, -1).split(",").map(Number)) : 0;
}

/** Both kinds of syntax have what the other one lacks; where they share something, it means the same. */
function toPattern(expression: string): string {
  try {
    return `^(?:${toRegularPattern(expression)})$`;
  } catch (error) {
    const isOther = error instanceof UnenforceableError && !(error instanceof TooOftenError);
    if (!isOther || !isEcmaScript(expression)) throw error;
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

function textsGrammar(texts: TextSet): string {
  if (texts.isEmpty()) throw new UnenforceableError("matches no text");
  const writer = new GrammarWriter();
  return writer.toString(writeString(writer, texts, { form: "raw", hint: "text" }));
}

/** Longer ones than this, in characters, are read in more than one turn of the event loop; hardly any is. */
const LONG_GRAMMAR = 8192;

/** Each may be a state to begin with, and llama.cpp compares each of those with all others. */
const MAX_CHOICES = 8_192;
/**
 * Literals, classes and comments, and what makes choices. A literal or class without an end is matched, too: from each that is
 * not, the rest of the grammar would be looked through.
 */
const CHOICES = /"(?:\\.|[^"\\\n])*"?|\[(?:\\.|[^\]\\\n])*\]?|#[^\n]*|[|?*+]|\{[\d,\s]*\}/g;

/** Literals, classes and comments, which stay as they are, and names. */
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

function explained(write: () => string): string {
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
