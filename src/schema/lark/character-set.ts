import { type CodePoints, without } from "../code-point-set.ts";

/** What a complement such as `[^a]` can match: text without control characters other than tab and line ends. */
const TEXT: readonly CodePoints[] = [
  [0x09, 0x0a],
  [0x0d, 0x0d],
  [0x20, 0x7e],
  [0x80, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** All text that is not in a set. */
export function outside(set: readonly CodePoints[]): CodePoints[] {
  return without(TEXT, set);
}

/** A set with both cases of its ASCII letters. */
export function inBothCases(set: readonly CodePoints[]): CodePoints[] {
  const other = set.flatMap(([from, to]) =>
    [[0x41, 0x5a, 0x20] as const, [0x61, 0x7a, -0x20] as const].flatMap(
      ([first, last, shift]): CodePoints[] => {
        const [low, high] = [Math.max(first, from), Math.min(last, to)];
        return low <= high ? [[low + shift, high + shift]] : [];
      },
    ),
  );
  return [...set, ...other];
}

/** One character of a set, as a pattern without a complement: JSON Schema engines differ in what those match. */
export function setPattern(set: readonly CodePoints[]): string {
  const [only] = set;
  if (only && set.length === 1 && only[0] === only[1]) return escaped(only[0], SPECIAL);
  const members = set.map(([from, to]) =>
    from === to
      ? escaped(from, SPECIAL_IN_CLASS)
      : `${escaped(from, SPECIAL_IN_CLASS)}-${escaped(to, SPECIAL_IN_CLASS)}`,
  );
  return `[${members.join("")}]`;
}

const SPECIAL = /[\\^$.*+?()[\]{}|/]/;
const SPECIAL_IN_CLASS = /[\\^\]-]|\[/;
const LETTERS: Readonly<Record<number, string>> = { 9: "\\t", 10: "\\n", 13: "\\r" };

function escaped(point: number, special: RegExp): string {
  const letter = LETTERS[point];
  if (letter !== undefined) return letter;
  const text = String.fromCodePoint(point);
  if (special.test(text)) return `\\${text}`;
  if (point >= 0x20 && point < 0x7f) return text;
  const hex = point.toString(16);
  return point > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}
