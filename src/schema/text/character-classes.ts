import { NotRegularError } from "../schema-errors.ts";
import { type CodePoints, codePoints, complementOf, LAST_CODE_POINT } from "./code-points.ts";

const DIGITS: CodePoints = [0x30, 0x39];
const WORD: CodePoints = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
/** White space and line ends of ECMA-262. */
const BLANKS = codePoints([
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
const LINE_ENDS: CodePoints = [0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029];

/** What `\w` matches. */
export const WORD_POINTS = WORD;
/** What `.` matches. */
export const DOT_POINTS = complementOf(LINE_ENDS);

const CLASSES: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  D: complementOf(DIGITS),
  w: WORD,
  W: complementOf(WORD),
  s: BLANKS,
  S: complementOf(BLANKS),
};

/** The code points of `\d`, `\D`, `\w`, `\W`, `\s` or `\S`, by their letter. */
export function classOfLetter(letter: string): CodePoints | undefined {
  return Object.hasOwn(CLASSES, letter) ? CLASSES[letter] : undefined;
}

/** Properties that were asked for; so many that a client cannot fill the memory with them. */
const knownProperties = new Map<string, CodePoints>();
const MAX_KNOWN_PROPERTIES = 64;

/**
 * The code points that have a Unicode property.
 * @param name as in `\p{name}`: "L", "Script=Greek"
 * @throws NotRegularError when the runtime does not know it
 */
export function pointsWithProperty(name: string): CodePoints {
  const known = knownProperties.get(name);
  if (known) return known;
  let matcher: RegExp;
  try {
    matcher = new RegExp(`^\\p{${name}}`, "u");
  } catch {
    throw new NotRegularError(`it has the unknown property \\p{${name}}`);
  }
  const ranges: [number, number][] = [];
  let first: number | undefined;
  for (let point = 0; point <= LAST_CODE_POINT + 1; point += 1) {
    const has = point <= LAST_CODE_POINT && matcher.test(String.fromCodePoint(point));
    if (has) first ??= point;
    else if (first !== undefined) {
      ranges.push([first, point - 1]);
      first = undefined;
    }
  }
  const result = codePoints(ranges);
  if (knownProperties.size < MAX_KNOWN_PROPERTIES) knownProperties.set(name, result);
  return result;
}
