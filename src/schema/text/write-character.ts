import {
  ALL_BUT_SURROGATES,
  type CodePoints,
  hasCodePoint,
  intersectionOf,
  rangesOf,
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

/** Writes one character of a set, as GBNF that can stand in a sequence. */
export function writeCharacter(set: CodePoints, form: "json" | "raw"): string {
  if (form === "raw") return gbnfClass(intersectionOf(set, ALL_BUT_SURROGATES));
  const choices: string[] = [];
  const plain = intersectionOf(set, UNESCAPED);
  if (plain.length > 0) choices.push(gbnfClass(plain));
  const letters = LETTERS.filter(([point]) => hasCodePoint(set, point)).map(([, letter]) => letter);
  if (letters.length > 0) choices.push(`"\\\\" ${gbnfLetters(letters)}`);
  const controls = OTHER_CONTROLS.filter((point) => hasCodePoint(set, point));
  if (controls.length > 0) choices.push(...controlEscapes(controls));
  return choices.length === 1 ? (choices[0] ?? "") : `(${choices.join(" | ")})`;
}

/** `\u001f` and the like, by their first digit of two. */
function controlEscapes(points: readonly number[]): string[] {
  return [0, 1].flatMap((high) => {
    const digits = points.filter((point) => point >> 4 === high).map((point) => (point & 15).toString(16));
    if (digits.length === 0) return [];
    return [`"\\\\u00${high}" [${digits.join("")}]`];
  });
}

function gbnfLetters(letters: readonly string[]): string {
  return `[${letters.map((letter) => gbnfMember(letter.codePointAt(0) ?? 0)).join("")}]`;
}

/** A class of characters, or a literal for a single one. */
function gbnfClass(set: CodePoints): string {
  const [first, last] = set;
  if (set.length === 2 && first !== undefined && first === last)
    return gbnfLiteral(String.fromCodePoint(first));
  const members = rangesOf(set).map(([from, to]) => {
    if (from === to) return gbnfMember(from);
    return `${gbnfMember(from)}${to === from + 1 ? "" : "-"}${gbnfMember(to)}`;
  });
  return `[${members.join("")}]`;
}

/** A literal text in GBNF. */
export function gbnfLiteral(text: string): string {
  const characters = Array.from(text, (character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    const point = character.codePointAt(0) ?? 0;
    return isReadable(point) ? character : gbnfEscape(point);
  });
  return `"${characters.join("")}"`;
}

function gbnfMember(point: number): string {
  const character = String.fromCodePoint(point);
  if (isReadable(point) && !`[]^-\\"`.includes(character)) return character;
  return gbnfEscape(point);
}

/** Printable ASCII: other characters are hard to tell apart in a class. */
const isReadable = (point: number): boolean => point >= 0x20 && point < 0x7f;

function gbnfEscape(point: number): string {
  if (point === 10) return String.raw`\n`;
  if (point < 0x100) return `\\x${point.toString(16).toUpperCase().padStart(2, "0")}`;
  if (point < 0x10000) return `\\u${point.toString(16).toUpperCase().padStart(4, "0")}`;
  return `\\U${point.toString(16).toUpperCase().padStart(8, "0")}`;
}
