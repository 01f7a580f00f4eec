import { GrammarWriter, MAX_GRAMMAR_LENGTH } from "./gbnf/grammar-writer.ts";
import { leftRecursiveRule, parseGbnf } from "./gbnf/parse-gbnf.ts";
import { larkExpression } from "./lark/lark-expression.ts";
import { larkToGbnf } from "./lark/write-lark.ts";
import {
  GrammarTokenError,
  SchemaTooComplexError,
  UnsupportedGrammarError,
  WorkBudget,
} from "./schema-errors.ts";
import { checkPatternLength } from "./text/parse-pattern.ts";
import { parseRegex, RepetitionLimitError } from "./text/parse-regex.ts";
import { printPattern } from "./text/print-pattern.ts";
import { expressionsFor, TextSet } from "./text/text-set.ts";
import { writeString } from "./text/write-text.ts";

/**
 * Source language of a grammar. gbnf: llama.cpp's. guided: vLLM's, which is GBNF where names may have underscores, or Lark.
 * choice: a list of texts.
 */
export type TextLanguage = "regex" | "choice" | "lark" | "gbnf" | "guided";

/**
 * Compiles a grammar in another language to GBNF, or checks that llama.cpp can parse GBNF and starts it fast.
 * @throws UnsupportedGrammarError, SchemaTooComplexError
 */
export function textGrammar(
  language: TextLanguage,
  source: string | readonly string[],
  budget = new WorkBudget(),
): string {
  if (typeof source !== "string") return writeTexts(TextSet.oneOf(source, budget));
  switch (language) {
    case "gbnf":
      return checkedGbnf(source);
    case "guided":
      return source.includes("::=") ? checkedGbnf(withoutUnderscores(source)) : larkToGbnf(source, budget);
    case "lark":
      return larkToGbnf(source, budget);
    default:
      return writeTexts(regexTexts(source, budget));
  }
}

/**
 * Converts a regular expression or a Lark grammar without recursive rules to the pattern of a JSON schema.
 * @throws UnsupportedGrammarError
 */
export function textPattern(language: "regex" | "lark", source: string, budget = new WorkBudget()): string {
  const make = expressionsFor(budget);
  try {
    const expression = language === "regex" ? parseRegex(source, "", make) : larkExpression(source, make);
    return `^(?:${printPattern(expression)})$`;
  } catch (error) {
    if (!(error instanceof SchemaTooComplexError)) throw error;
    throw new UnsupportedGrammarError("it is too large when its rules are written out", { cause: error });
  }
}

/** Returns the texts that a regular expression matches completely: of Python or Rust, or else of ECMAScript. */
function regexTexts(source: string, budget: WorkBudget): TextSet {
  checkPatternLength(source);
  try {
    return TextSet.of(parseRegex(source, "", expressionsFor(budget)), budget);
  } catch (error) {
    const isSyntax = error instanceof UnsupportedGrammarError && !(error instanceof RepetitionLimitError);
    if (!isSyntax || !isEcmaScript(source)) throw error;
    return TextSet.pattern(`^(?:${source})$`, budget);
  }
}

function isEcmaScript(source: string): boolean {
  try {
    return new RegExp(source, "u").source !== "";
  } catch {
    return false;
  }
}

function writeTexts(texts: TextSet): string {
  if (texts.isEmpty()) throw new UnsupportedGrammarError("it matches no text");
  const writer = new GrammarWriter();
  return writer.toString(writeString(writer, texts, { form: "raw", hint: "text" }));
}

/** Checks a GBNF grammar and returns it unchanged. One that names tokens is left to the engine. */
function checkedGbnf(grammar: string): string {
  if (grammar.length > MAX_GRAMMAR_LENGTH)
    throw new UnsupportedGrammarError(`it has more than ${MAX_GRAMMAR_LENGTH} characters`);
  let choices = 0;
  for (const [part] of grammar.matchAll(CHOICES)) choices += /^[|?*+]$/.test(part) ? 1 : maxRepeats(part);
  if (choices > MAX_CHOICES)
    throw new UnsupportedGrammarError(`it has more than ${MAX_CHOICES} alternatives and repetitions`);
  try {
    const recursive = leftRecursiveRule(parseGbnf(grammar));
    if (recursive === undefined) return grammar;
    throw new UnsupportedGrammarError(
      `its rule ${JSON.stringify(recursive.slice(0, 100))} begins with itself`,
    );
  } catch (error) {
    if (error instanceof GrammarTokenError) return grammar;
    throw error;
  }
}

function maxRepeats(part: string): number {
  return part.startsWith("{") ? Math.max(...part.slice(1, -1).split(",").map(Number)) : 0;
}

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
