import { gbnfClass, gbnfLiteral, type GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { Automaton } from "./automaton.ts";
import {
  ALL_BUT_SURROGATES,
  type CodePoints,
  codePoints,
  hasCodePoint,
  intersectionOf,
} from "./code-points.ts";
import type { Expression } from "./expressions.ts";
import type { TextSet } from "./text-set.ts";

interface TextForm {
  /** "json" writes a JSON string literal with its quotes, "raw" the text itself. */
  readonly form?: "json" | "raw";
  /** What the text is, for readable names of rules. */
  readonly hint?: string;
}

/**
 * Writes the texts of a set. A set without texts has no grammar: check {@link TextSet.isEmpty} first.
 * @returns the name of the rule
 * @throws SchemaTooComplexError
 */
export function writeString(writer: GrammarWriter, set: TextSet, options: TextForm = {}): string {
  const { form = "json", hint = "string" } = options;
  const plain = writeExpression(writer, set.expression, form);
  if (plain === undefined) return writeAutomaton(writer, set.automaton(), form, hint);
  return writer.rule(hint, form === "json" ? String.raw`"\"" ${plain} "\""` : plain);
}

/** Writes an automaton as rules of which each is a state: one character, and then the next state. */
function writeAutomaton(
  writer: GrammarWriter,
  states: Automaton,
  form: "json" | "raw",
  hint: string,
): string {
  const names = states.map(() => writer.reserve(hint));
  for (const [at, { mayEnd, edges }] of states.entries()) {
    const choices = edges.map(({ set, to }) => `${writeCharacter(writer, set, form)} ${names[to]}`);
    if (mayEnd) choices.push(form === "json" ? String.raw`"\""` : '""');
    writer.define(names[at] ?? "", choices.join(" | "));
  }
  return form === "json" ? writer.rule(hint, String.raw`"\"" ${names[0]}`) : (names[0] ?? "");
}

/** Most times that llama.cpp lets a part be repeated by one pair of braces. */
const MAX_REPEATS = 2_000;

/**
 * Writes an expression as it is, with its repetitions: short, and as a person would.
 * @returns a sequence of GBNF; undefined when a text could be read in several ways, which costs llama.cpp a stack each,
 *   or when the expression cannot be written so: then an automaton is
 */
function writeExpression(
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

/** Code points that stand for themselves in a JSON string. */
const UNESCAPED: CodePoints = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0xd7ff, 0xe000, 0x10ffff];

/** What JSON writes instead of a character after a backslash. */
const LETTERS: readonly (readonly [point: number, letter: string])[] = [
  [0x22, '"'],
  [0x5c, "\\"],
  [8, "b"],
  [12, "f"],
  [10, "n"],
  [13, "r"],
  [9, "t"],
];

/** Control characters without a letter of their own. */
const OTHER_CONTROLS = Array.from({ length: 32 }, (_, point) => point).filter(
  (point) => !LETTERS.some(([of]) => of === point),
);

/** Longest text that is written again wherever it is needed, instead of a rule of its own. */
const MAX_INLINE = 24;

/** Writes one character of a set, as GBNF that can stand in a sequence and be repeated. */
export function writeCharacter(writer: GrammarWriter, set: CodePoints, form: "json" | "raw"): string {
  const text = characterText(set, form);
  if (text.length > MAX_INLINE) return writer.rule("char", text);
  return text.includes(" ") ? `(${text})` : text;
}

function characterText(set: CodePoints, form: "json" | "raw"): string {
  if (form === "raw") return gbnfClass(intersectionOf(set, ALL_BUT_SURROGATES));
  const choices: string[] = [];
  const plain = intersectionOf(set, UNESCAPED);
  if (plain.length > 0) choices.push(gbnfClass(plain));
  const letters = LETTERS.filter(([point]) => hasCodePoint(set, point)).map(([, letter]) => letter);
  if (letters.length > 0)
    choices.push(
      `"\\\\" ${gbnfClass(codePoints(letters.map((letter) => [letter.codePointAt(0) ?? 0, letter.codePointAt(0) ?? 0])))}`,
    );
  const controls = OTHER_CONTROLS.filter((point) => hasCodePoint(set, point));
  if (controls.length > 0) choices.push(...controlEscapes(controls));
  // A set of half characters alone, which no text has.
  return choices.length === 0 ? gbnfClass([]) : choices.join(" | ");
}

/** `\u001f` and the like, by their first digit of two. */
function controlEscapes(points: readonly number[]): string[] {
  return [0, 1].flatMap((high) => {
    const digits = points.filter((point) => point >> 4 === high).map((point) => (point & 15).toString(16));
    if (digits.length === 0) return [];
    return [`"\\\\u00${high}" [${digits.join("")}]`];
  });
}

/** Most alternatives that are compared with each other. */
const MAX_COMPARED = 64;

interface Ends {
  readonly canBeEmpty: boolean;
  readonly first: readonly Expression[];
}

/**
 * True when the next character always says which part of the expression it belongs to: the expression is deterministic
 * in the sense of Brüggemann-Klein and Wood. The parts of repetitions count as one.
 */
function isUnambiguous(root: Expression): boolean {
  try {
    endsOf(root);
    return true;
  } catch (error) {
    if (error === AMBIGUOUS) return false;
    throw error;
  }
}

const AMBIGUOUS = new Error("ambiguous");

const knownEnds = new WeakMap<Expression, Ends>();
const knownContinuations = new WeakMap<Expression, readonly Expression[]>();

/** Groups within groups are asked for again and again. */
function endsOf(part: Expression): Ends {
  const known = knownEnds.get(part) ?? findEnds(part);
  knownEnds.set(part, known);
  return known;
}

function findEnds(part: Expression): Ends {
  switch (part.kind) {
    case "set":
      return { canBeEmpty: false, first: [part] };
    case "either": {
      const ends = part.parts.map(endsOf);
      const first = ends.flatMap((end) => end.first);
      checkDisjoint(first);
      return { canBeEmpty: ends.some((end) => end.canBeEmpty), first };
    }
    case "repeat": {
      const body = endsOf(part.body);
      // Where a body can be empty, or can go on itself as it can be repeated, its turns cannot be counted.
      if (part.max > 1 && (body.canBeEmpty || canGoOn(part.body, body.first))) throw AMBIGUOUS;
      return { ...body, canBeEmpty: part.min === 0 };
    }
    case "sequence":
      return endsOfSequence(part);
    default:
      return { canBeEmpty: true, first: [] };
  }
}

function endsOfSequence(sequence: Expression): Ends {
  let after: readonly Expression[] = [];
  let canBeEmpty = true;
  for (const part of sequenceParts(sequence).toReversed()) {
    const ends = endsOf(part);
    if (canGoOn(part, after)) throw AMBIGUOUS;
    if (ends.canBeEmpty) checkDisjoint([...ends.first, ...after]);
    canBeEmpty &&= ends.canBeEmpty;
    after = ends.canBeEmpty ? [...ends.first, ...after] : ends.first;
  }
  return { canBeEmpty, first: after };
}

/** True when a part that may end could go on instead with a character that may also begin what follows. */
function canGoOn(part: Expression, next: readonly Expression[]): boolean {
  if (next.length > MAX_COMPARED) throw AMBIGUOUS;
  return continuationsOf(part).some((a) => next.some((b) => overlap(a, b)));
}

/** What may follow within a part after it could have ended. */
function continuationsOf(part: Expression): readonly Expression[] {
  const known = knownContinuations.get(part) ?? findContinuations(part);
  if (known.length > MAX_COMPARED) throw AMBIGUOUS;
  knownContinuations.set(part, known);
  return known;
}

function findContinuations(part: Expression): readonly Expression[] {
  switch (part.kind) {
    case "either":
      return part.parts.flatMap(continuationsOf);
    case "repeat": {
      const again = part.max > 1 && part.min !== part.max ? endsOf(part.body).first : [];
      return [...again, ...continuationsOf(part.body)];
    }
    case "sequence": {
      const found: Expression[] = [];
      for (const each of sequenceParts(part).toReversed()) {
        const ends = endsOf(each);
        found.push(...continuationsOf(each));
        if (!ends.canBeEmpty) break;
        found.push(...ends.first);
      }
      return found;
    }
    default:
      return [];
  }
}

const overlap = (a: Expression, b: Expression): boolean =>
  a.kind === "set" && b.kind === "set" && intersectionOf(a.set, b.set).length > 0;

function checkDisjoint(sets: readonly Expression[]): void {
  if (sets.length > MAX_COMPARED) throw AMBIGUOUS;
  for (const [at, a] of sets.entries())
    for (const b of sets.slice(at + 1)) if (overlap(a, b)) throw AMBIGUOUS;
}

/** The parts of a sequence, or the only part. */
function sequenceParts(sequence: Expression): Expression[] {
  const parts: Expression[] = [];
  let at = sequence;
  for (; at.kind === "sequence"; at = at.tail) parts.push(at.head);
  return [...parts, at];
}
