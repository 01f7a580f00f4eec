import { BLANKS, LINE_ENDS } from "../code-point-set.ts";
import { NotRegularError } from "../schema-errors.ts";
import { type CodePoints, codePoints, complementOf, LAST_CODE_POINT } from "./code-points.ts";

const DIGITS: CodePoints = [0x30, 0x39];
const WORD: CodePoints = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
const BLANK_POINTS = codePoints(BLANKS);

/** What `\w` matches. */
export const WORD_POINTS = WORD;
/** What `.` matches. */
export const DOT_POINTS = complementOf(codePoints(LINE_ENDS));

const CLASSES: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  D: complementOf(DIGITS),
  w: WORD,
  W: complementOf(WORD),
  s: BLANK_POINTS,
  S: complementOf(BLANK_POINTS),
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
