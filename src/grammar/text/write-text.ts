import { choice, EMPTY, type Part, repeat, text } from "../build/part.ts";
import { PartWriter } from "../build/write-parts.ts";
import { gbnfClass, type GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { Automaton } from "./automaton.ts";
import {
  ALL_BUT_SURROGATES,
  type CodePoints,
  codePoints,
  hasCodePoint,
  intersectionOf,
  UNESCAPED,
} from "./code-points.ts";
import { type Expression, partsOfSequence } from "./expressions.ts";
import type { TextSet } from "./text-set.ts";

interface TextForm {
  /** json: as a JSON string with quotes; raw: the text itself. */
  readonly form?: "json" | "raw";
  /** Base of rule names. */
  readonly hint?: string;
}

/**
 * Writes the texts of a set. The set must not be empty; see {@link TextSet.isEmpty}.
 * @returns name of the rule
 * @throws SchemaTooComplexError
 */
export function writeString(writer: GrammarWriter, set: TextSet, options: TextForm = {}): string {
  const { form = "json", hint = "string" } = options;
  const { expression } = set;
  // llama.cpp needs a stack for each way to match a text.
  if (!expression.isPlain || !isUnambiguous(expression))
    return writeAutomaton(writer, set.automaton(), form, hint);
  const plain = new PartWriter(writer).write(partOf(expression, form));
  return writer.rule(hint, form === "json" ? String.raw`"\"" ${plain} "\""` : plain);
}

/** Writes an automaton as one rule per state: a character, then the next state. */
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

/** Converts an expression without lookarounds, intersections and complements to a part, which is shorter than its automaton. */
function partOf(expression: Expression, form: "json" | "raw"): Part {
  switch (expression.kind) {
    case "set": {
      const { set } = expression;
      const [first, last] = set;
      if (set.length > 2 || first === undefined || first !== last)
        return { kind: "leaf", write: (writer) => writeCharacter(writer, set, form) };
      const character = String.fromCodePoint(first);
      return text(form === "json" ? JSON.stringify(character).slice(1, -1) : character);
    }
    case "sequence":
      return { kind: "sequence", parts: partsOfSequence(expression).map((each) => partOf(each, form)) };
    case "either":
      return choice(expression.parts.map((each) => partOf(each, form)));
    case "repeat":
      return repeat(partOf(expression.body, form), expression.min, expression.max);
    default:
      return EMPTY;
  }
}

/** Letters of JSON's short escapes. */
const LETTERS: readonly (readonly [point: number, letter: string])[] = [
  [0x22, '"'],
  [0x5c, "\\"],
  [8, "b"],
  [12, "f"],
  [10, "n"],
  [13, "r"],
  [9, "t"],
];

/** Control characters without a short escape. */
const OTHER_CONTROLS = Array.from({ length: 32 }, (_, point) => point).filter(
  (point) => !LETTERS.some(([of]) => of === point),
);

/** Most characters of a class that is written inline. */
const MAX_INLINE = 24;

/** Writes one character of a set, as a term that can be in a sequence and be repeated. */
export function writeCharacter(writer: GrammarWriter, set: CodePoints, form: "json" | "raw"): string {
  const term = characterText(set, form);
  if (term.length > MAX_INLINE) return writer.rule("char", term);
  return term.includes(" ") ? `(${term})` : term;
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
  // A set of surrogates only, which matches no text.
  return choices.length === 0 ? gbnfClass([]) : choices.join(" | ");
}

/** Writes escapes such as `\u001f`, grouped by the first of two digits. */
function controlEscapes(points: readonly number[]): string[] {
  return [0, 1].flatMap((high) => {
    const digits = points.filter((point) => point >> 4 === high).map((point) => (point & 15).toString(16));
    if (digits.length === 0) return [];
    return [`"\\\\u00${high}" [${digits.join("")}]`];
  });
}

/** Most alternatives that are compared pairwise. */
const MAX_COMPARED = 64;

interface Ends {
  readonly canBeEmpty: boolean;
  readonly first: readonly Expression[];
}

/**
 * True if the next character always determines the part of the expression that matches it: the expression is
 * deterministic in the sense of Brüggemann-Klein and Wood. The iterations of a repetition count as one part.
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

/** Cached result of {@link findEnds}, as nested groups are visited repeatedly. */
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
      // If a body can be empty, or continue in the same way as it can repeat, its iterations are ambiguous.
      if (part.max > 1 && (body.canBeEmpty || mayContinue(part.body, body.first))) throw AMBIGUOUS;
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
  for (const part of partsOfSequence(sequence).toReversed()) {
    const ends = endsOf(part);
    if (mayContinue(part, after)) throw AMBIGUOUS;
    if (ends.canBeEmpty) checkDisjoint([...ends.first, ...after]);
    canBeEmpty &&= ends.canBeEmpty;
    after = ends.canBeEmpty ? [...ends.first, ...after] : ends.first;
  }
  return { canBeEmpty, first: after };
}

/** True if a part that may end could also continue with a character that may begin the next part. */
function mayContinue(part: Expression, next: readonly Expression[]): boolean {
  if (next.length > MAX_COMPARED) throw AMBIGUOUS;
  return continuationsOf(part).some((a) => next.some((b) => overlap(a, b)));
}

/** Returns the sets by which a part may continue after it could have ended. */
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
      for (const each of partsOfSequence(part).toReversed()) {
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
