import { UnsupportedGrammarError } from "../schema-errors.ts";
import {
  type CodePoints,
  codePoints,
  complementOf,
  DIGITS,
  LAST_CODE_POINT,
  oneCodePoint,
  rangesOf,
  WORD,
} from "./code-points.ts";

const CONTROLS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11 };
const HYPHEN = 0x2d;

/** Reads a character class, after its `[`. */
export function readClass(characters: PatternCharacters): CodePoints {
  const isComplement = characters.take("^");
  const ranges: [number, number][] = [];
  while (!characters.take("]")) {
    const first = readMember(characters);
    const isRange = characters.takeMatch(/^-(?!\])/) !== undefined;
    if (!isRange) {
      ranges.push(...rangesOf(first));
      continue;
    }
    const last = readMember(characters);
    const [from, to] = [onlyPoint(first), onlyPoint(last)];
    if (from !== undefined && to !== undefined) ranges.push([from, to]);
    // Without the flag `u`, the hyphen beside a class such as \d is a hyphen.
    else ranges.push(...rangesOf(first), [HYPHEN, HYPHEN], ...rangesOf(last));
  }
  const set = codePoints(ranges);
  return isComplement ? complementOf(set) : set;
}

function onlyPoint(set: CodePoints): number | undefined {
  return set.length === 2 && set[0] === set[1] ? set[0] : undefined;
}

function readMember(characters: PatternCharacters): CodePoints {
  const next = characters.next();
  return next === "\\" ? readEscape(characters, true) : oneCodePoint(next.codePointAt(0) ?? 0);
}

/**
 * Reads an escape after its backslash, that is one character or one of several.
 * @throws UnsupportedGrammarError for a back-reference
 */
export function readEscape(characters: PatternCharacters, isInClass: boolean): CodePoints {
  const { isStrict } = characters;
  const letter = characters.next();
  const known = classOfLetter(letter);
  if (known) return known;
  const control = CONTROLS[letter];
  if (control !== undefined) return oneCodePoint(control);
  switch (letter) {
    case "b":
      return oneCodePoint(8);
    case "c": {
      const found = characters.takeMatch(/^[a-zA-Z]/);
      if (found) return oneCodePoint((found[0].codePointAt(0) ?? 0) % 32);
      throw new UnsupportedGrammarError(String.raw`it has \c without a letter`);
    }
    case "p":
    case "P": {
      if (!isStrict) break;
      const set = pointsWithProperty(characters.takeMatch(/^\{([\w=]+)\}/)?.[1] ?? "");
      return letter === "P" ? complementOf(set) : set;
    }
    case "x": {
      const found = characters.takeMatch(/^[\da-fA-F]{2}/);
      if (found) return oneCodePoint(Number.parseInt(found[0], 16));
      break;
    }
    case "u":
      return readUnicode(characters);
    case "k":
      if (!isStrict && !characters.hasNamedGroups) break;
      throw new UnsupportedGrammarError("it has a back-reference");
    default:
      if (/\d/.test(letter)) return readDigits(characters, letter, isInClass);
  }
  return oneCodePoint(letter.codePointAt(0) ?? 0);
}

function readUnicode(characters: PatternCharacters): CodePoints {
  if (characters.isStrict) {
    const braced = characters.takeMatch(/^\{([\da-fA-F]+)\}/);
    if (braced) return oneCodePoint(Number.parseInt(braced[1] ?? "", 16));
  }
  const pair = readSurrogatePair(characters);
  if (pair) return pair;
  const found = characters.takeMatch(/^[\da-fA-F]{4}/);
  return oneCodePoint(found ? Number.parseInt(found[0], 16) : 0x75);
}

/** Reads a character in two escapes, the first of which has been begun: "D83D\\uDE00". */
export function readSurrogatePair(characters: PatternCharacters): CodePoints | undefined {
  const pair = characters.takeMatch(/^[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/);
  if (!pair) return undefined;
  const halves = pair[0].split(String.raw`\u`).map((half) => Number.parseInt(half, 16));
  return oneCodePoint(String.fromCharCode(...halves).codePointAt(0) ?? 0);
}

/** A back-reference, or without the flag `u` a character by its octal number. */
function readDigits(characters: PatternCharacters, digit: string, isInClass: boolean): CodePoints {
  const isNull = digit === "0" && characters.takeMatch(/^(?=\d)/) === undefined;
  if (isNull) return oneCodePoint(0);
  if (!isInClass && digit !== "0") throw new UnsupportedGrammarError("it has a back-reference");
  throw new UnsupportedGrammarError("it has a character by its octal number");
}

/** Reads the characters of a pattern. */
export class PatternCharacters {
  /** True when it is valid with the flag `u`. */
  readonly isStrict: boolean;
  readonly #source: string;
  #at = 0;

  constructor(source: string, isStrict: boolean) {
    this.isStrict = isStrict;
    this.#source = source;
  }

  /** True when groups have names: then `\k` refers to one also without the flag `u`. */
  get hasNamedGroups(): boolean {
    return /\(\?<(?![=!])/.test(this.#source);
  }

  /** Number of characters read so far. */
  get position(): number {
    return Array.from(this.#source.slice(0, this.#at)).length;
  }

  peek(): string | undefined {
    const point = this.#source.codePointAt(this.#at);
    return point === undefined ? undefined : String.fromCodePoint(point);
  }

  next(): string {
    const next = this.peek();
    if (next === undefined) throw new UnsupportedGrammarError("it ends too early");
    this.#at += next.length;
    return next;
  }

  /** The character that was read last. */
  before(): string {
    return this.#source[this.#at - 1] ?? "";
  }

  take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  takeAll(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  /** True if a regular expression matches here, within the next few characters. */
  isAt(expression: RegExp): boolean {
    return expression.test(this.#ahead);
  }

  /** Takes what a regular expression finds here, within the next few characters. */
  takeMatch(expression: RegExp): RegExpExecArray | undefined {
    const found = expression.exec(this.#ahead) ?? undefined;
    if (found) this.#at += found[0].length;
    return found;
  }

  skipPast(character: string): void {
    while (this.next() !== character);
  }

  /** Takes `*`, `+`, `?` or `{m,n}`. */
  takeQuantifier(): [min: number, max: number] | undefined {
    if (this.take("*")) return [0, Infinity];
    if (this.take("+")) return [1, Infinity];
    if (this.take("?")) return [0, 1];
    const found = this.takeMatch(/^\{(\d+)(?:(,)(\d*))?\}/);
    const min = Number(found?.[1] ?? 0);
    if (min > MAX_MIN_REPEATS || this.takeMatch(/^\{(?:\d+,)?\d{35}/))
      throw new UnsupportedGrammarError("it repeats something too many times");
    if (!found) return undefined;
    if (found[2] === undefined) return [min, min];
    return [min, found[3] === "" ? Infinity : Number(found[3])];
  }

  get #ahead(): string {
    return this.#source.slice(this.#at, this.#at + MAX_MATCH);
  }
}

/** Largest bound of a repetition; no text of a model is longer. */
const MAX_MIN_REPEATS = 1_000_000_000;
/** Longest lookahead of the reader: a property with the longest name, or a quantifier with two large numbers. */
const MAX_MATCH = 110;

/** Whitespace and line terminators of ECMA-262. */
const WHITESPACE: CodePoints = [
  0x09, 0x0d, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f,
  0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
];
/** Code points of `.`: all but line terminators. */
export const DOT_POINTS = complementOf([0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029]);

const CLASSES: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  D: complementOf(DIGITS),
  w: WORD,
  W: complementOf(WORD),
  s: WHITESPACE,
  S: complementOf(WHITESPACE),
};

/** Returns the code points of `\d`, `\D`, `\w`, `\W`, `\s` or `\S`, by their letter. */
function classOfLetter(letter: string): CodePoints | undefined {
  return Object.hasOwn(CLASSES, letter) ? CLASSES[letter] : undefined;
}

/** Cache of Unicode properties, limited so that clients cannot fill the memory. */
const knownProperties = new Map<string, CodePoints>();
const MAX_KNOWN_PROPERTIES = 64;

/**
 * Returns the code points with a Unicode property.
 * @param name as in `\p{name}`: "L", "Script=Greek"
 * @throws UnsupportedGrammarError if the runtime does not support it
 */
function pointsWithProperty(name: string): CodePoints {
  const known = knownProperties.get(name);
  if (known) return known;
  let matcher: RegExp;
  try {
    matcher = new RegExp(`^\\p{${name}}`, "u");
  } catch {
    throw new UnsupportedGrammarError(`it has the unknown property \\p{${name}}`);
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
