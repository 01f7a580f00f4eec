import { type CodePoints, rangesOf } from "../text/code-points.ts";

/** A class of characters, or a literal for a single one. */
export function gbnfClass(set: CodePoints): string {
  const [first, last] = set;
  if (set.length === 2 && first !== undefined && first === last)
    return gbnfLiteral(String.fromCodePoint(first));
  // Nothing matches: the complement of everything.
  if (first === undefined) return String.raw`[^\x00-\U0010FFFF]`;
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
