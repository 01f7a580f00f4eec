import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import { gbnfLiteral } from "../gbnf/gbnf-text.ts";
import type { CodePoints } from "./code-points.ts";
import type { Expression } from "./expression.ts";
import { isUnambiguous, sequenceParts } from "./is-unambiguous.ts";
import { writeCharacter } from "./write-character.ts";

/** Most times that llama.cpp lets a part be repeated by one pair of braces. */
const MAX_REPEATS = 2_000;

/**
 * Writes an expression as it is, with its repetitions: short, and as a person would.
 * @returns a sequence of GBNF; undefined when a text could be read in several ways, which costs llama.cpp a stack each,
 *   or when the expression cannot be written so: then an automaton is
 */
export function writeExpression(
  writer: GrammarWriter,
  expression: Expression,
  form: "json" | "raw",
): string | undefined {
  if (!expression.isPlain || !isUnambiguous(expression)) return undefined;
  return writtenPart(writer, expression, form);
}

function writtenPart(writer: GrammarWriter, part: Expression, form: "json" | "raw"): string {
  switch (part.kind) {
    case "set":
      return writeCharacter(writer, part.set, form);
    case "sequence":
      return writtenSequence(writer, part, form);
    case "either":
      return `(${part.parts.map((choice) => writtenPart(writer, choice, form)).join(" | ")})`;
    case "repeat": {
      const body = writtenPart(writer, part.body, form);
      const isOne = part.body.kind !== "sequence" && !body.includes(" ");
      return repeated(writer, isOne || part.body.kind === "either" ? body : `(${body})`, part.min, part.max);
    }
    default:
      return '""';
  }
}

function writtenSequence(writer: GrammarWriter, sequence: Expression, form: "json" | "raw"): string {
  const parts: string[] = [];
  let literal = "";
  const endLiteral = (): void => {
    if (literal !== "") parts.push(gbnfLiteral(literal));
    literal = "";
  };
  for (const part of sequenceParts(sequence)) {
    const character = part.kind === "set" ? onlyCharacter(part.set) : undefined;
    if (character === undefined) {
      endLiteral();
      parts.push(writtenPart(writer, part, form));
    } else literal += form === "json" ? JSON.stringify(character).slice(1, -1) : character;
  }
  endLiteral();
  return parts.join(" ");
}

function onlyCharacter([first, last, ...others]: CodePoints): string | undefined {
  if (first === undefined || first !== last || others.length > 0) return undefined;
  return String.fromCodePoint(first);
}

/** Repeats a part, by repetitions of repetitions where there are many. */
function repeated(writer: GrammarWriter, once: string, min: number, max: number): string {
  // What is already repeated needs parentheses.
  const part = /[}*+?]$/.test(once) ? `(${once})` : once;
  if (min === 0 && max === 1) return `${part}?`;
  if (min === 0 && max === Infinity) return `${part}*`;
  if (min === 1 && max === Infinity) return `${part}+`;
  if (min <= MAX_REPEATS && max === Infinity) return `${part}{${min},}`;
  if (max <= MAX_REPEATS) return `${part}{${min === max ? min : `${min},${max}`}}`;
  const block = writer.rule("many", `${part}{${MAX_REPEATS}}`);
  const blocks = Math.floor(min / MAX_REPEATS);
  const least = min % MAX_REPEATS;
  const fixed = blocks > 0 ? `${repeated(writer, block, blocks, blocks)} ` : "";
  if (max === Infinity) return `(${fixed}${repeated(writer, part, least, Infinity)})`;
  // Whole blocks while more than one is left, each followed by what may still come.
  const extra = max - min;
  const more = Math.floor(extra / MAX_REPEATS);
  const rest = extra % MAX_REPEATS;
  const required = least > 0 ? `${repeated(writer, part, least, least)} ` : "";
  let optional = rest > 0 ? `${part}{0,${rest}}` : '""';
  for (let count = 0; count < more; count += 1)
    optional = writer.rule("most", `${part}{0,${MAX_REPEATS - 1}} | ${block} ${optional}`);
  return `(${fixed}${required}${optional})`;
}
