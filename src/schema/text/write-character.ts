import { gbnfClass } from "../gbnf/gbnf-text.ts";
import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import {
  ALL_BUT_SURROGATES,
  type CodePoints,
  codePoints,
  hasCodePoint,
  intersectionOf,
} from "./code-points.ts";

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
