import { NotRegularError } from "../schema-errors.ts";
import { classOfLetter, pointsWithProperty } from "./character-classes.ts";
import { type CodePoints, codePoints, complementOf, oneCodePoint, rangesOf } from "./code-points.ts";
import type { PatternCharacters } from "./pattern-characters.ts";

const CONTROLS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11 };
const HYPHEN = 0x2d;

/** Reads a class of characters, after its `[`. */
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
 * @throws NotRegularError for a back-reference
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
      throw new NotRegularError(String.raw`it has \c without a letter`);
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
      throw new NotRegularError("it has a back-reference");
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
  const pair = characters.takeMatch(/^[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/);
  if (pair) {
    const halves = pair[0].split(String.raw`\u`).map((half) => Number.parseInt(half, 16));
    return oneCodePoint(String.fromCharCode(...halves).codePointAt(0) ?? 0);
  }
  const found = characters.takeMatch(/^[\da-fA-F]{4}/);
  return oneCodePoint(found ? Number.parseInt(found[0], 16) : 0x75);
}

/** A back-reference, or without the flag `u` a character by its octal number. */
function readDigits(characters: PatternCharacters, digit: string, isInClass: boolean): CodePoints {
  const isNull = digit === "0" && characters.takeMatch(/^(?=\d)/) === undefined;
  if (isNull) return oneCodePoint(0);
  if (!isInClass && digit !== "0") throw new NotRegularError("it has a back-reference");
  throw new NotRegularError("it has a character by its octal number");
}
