import { UnsupportedGrammarError } from "../schema-errors.ts";
import {
  type CodePoints,
  codePoints,
  complementOf,
  DIGITS,
  intersectionOf,
  oneCodePoint,
  rangesOf,
  unionOf,
  WORD,
} from "./code-points.ts";
import type { Expression, Expressions } from "./expressions.ts";
import { PatternCharacters, readSurrogatePair } from "./pattern-classes.ts";

/** Largest bound of a repetition. */
export const MAX_REPETITIONS = 9999;

/** Error for a repetition with too large a bound. */
export class RepetitionLimitError extends UnsupportedGrammarError {
  constructor() {
    super(`it repeats something more than ${MAX_REPETITIONS} times`);
  }
}

/** Deepest nesting of groups. */
const MAX_DEPTH = 50;

const REPETITION = /^(?:[*+?]|\{(\d{1,39})(?:(,)(\d{0,39}))?\}|\{,(\d{0,39})\})/;

const CLASSES: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  w: WORD,
  s: [0x09, 0x0a, 0x0d, 0x0d, 0x20, 0x20],
};
const CONTROLS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11, a: 7, 0: 0 };
/** Code points of complements such as `[^a]`: no control characters except tab and line ends. */
const TEXT: CodePoints = [0x09, 0x0a, 0x0d, 0x0d, 0x20, 0x7e, 0x80, 0xd7ff, 0xe000, 0x10ffff];

/**
 * Parses a regular expression of Rust or Python. It has to match the complete text, so anchors at its ends have no effect.
 * @param flags i and s; m, u and l are ignored
 * @throws UnsupportedGrammarError for lookarounds, backreferences, word boundaries and the like
 */
export function parseRegex(source: string, flags: string, make: Expressions): Expression {
  make.budget.spend(source.length);
  const [head = "", inline = ""] = /^\(\?([a-z]+)\)/.exec(source) ?? [];
  const unknown = /[^imsul]/.exec(flags + inline)?.[0];
  if (unknown !== undefined) throw new UnsupportedGrammarError(`it has the flag ${unknown}`);
  return new RegexReader(source.slice(head.length), flags + inline, head.length, make).read();
}

class RegexReader {
  readonly #characters: PatternCharacters;
  readonly #make: Expressions;
  readonly #ignoresCase: boolean;
  readonly #dot: CodePoints;
  readonly #skipped: number;

  /** @param skipped number of characters before the expression, for positions in errors */
  constructor(source: string, flags: string, skipped: number, make: Expressions) {
    this.#characters = new PatternCharacters(source, true);
    this.#make = make;
    this.#skipped = skipped;
    this.#ignoresCase = flags.includes("i");
    this.#dot = outside(flags.includes("s") ? [] : oneCodePoint(0x0a));
  }

  read(): Expression {
    const expression = this.#choice(0);
    if (this.#characters.peek() !== undefined)
      throw new UnsupportedGrammarError("it has a group that is closed twice");
    return expression;
  }

  #choice(depth: number): Expression {
    const characters = this.#characters;
    const choices: Expression[] = [];
    do {
      if (depth === 0) characters.takeMatch(/^(?:\^|\\A)/);
      choices.push(this.#sequence(depth));
      if (depth === 0) characters.takeMatch(/^(?:\$|\\[zZ])/);
    } while (characters.take("|"));
    return this.#make.either(choices);
  }

  /** Reads up to the end of an alternative. */
  #sequence(depth: number): Expression {
    const characters = this.#characters;
    const parts: Expression[] = [];
    while (characters.peek() !== undefined && !characters.isAt(/^(?:[|)$]|\\[zZ])/)) {
      parts.push(this.#quantified(this.#atom(depth)));
    }
    return this.#make.sequence(parts);
  }

  #atom(depth: number): Expression {
    const characters = this.#characters;
    const isRepetition = characters.isAt(REPETITION);
    const next = characters.next();
    if (next === "(") return this.#group(depth + 1);
    if (next === "[") return this.#make.set(this.#class());
    if (next === ".") return this.#set(this.#dot);
    if (next === "\\") return this.#set(this.#escape());
    if (isRepetition || next === "^")
      throw new UnsupportedGrammarError(`it has ${next} where it means nothing or an anchor`);
    return this.#set(pointOf(next));
  }

  #group(depth: number): Expression {
    const characters = this.#characters;
    const begin = this.#skipped + characters.position;
    if (depth > MAX_DEPTH) throw new UnsupportedGrammarError("it is nested too deeply");
    const isSpecial = characters.take("?") && !characters.take(":");
    if (isSpecial && !characters.takeMatch(/^P?<[A-Za-z_]\w{0,99}>/))
      throw new UnsupportedGrammarError("it has a lookaround, a flag or another special group");
    const body = this.#choice(depth);
    if (characters.peek() === undefined)
      throw new UnsupportedGrammarError(`it has a group that is not closed, at character ${begin}`);
    if (!characters.take(")"))
      throw new UnsupportedGrammarError(
        `it has an anchor in a group, at character ${this.#skipped + characters.position + 1}`,
      );
    return body;
  }

  #quantified(body: Expression): Expression {
    const characters = this.#characters;
    if (characters.isAt(/^\{(?:\d*,)?\d{40}/)) throw new RepetitionLimitError();
    const found = characters.takeMatch(REPETITION);
    if (!found) return body;
    characters.take("?"); // a lazy quantifier matches the same texts
    if (characters.peek() === "+") throw new UnsupportedGrammarError("it has a possessive quantifier");
    const [min, max] = boundsOf(found);
    checkBounds(min, max);
    if (min > MAX_REPETITIONS || (max > MAX_REPETITIONS && max !== Infinity))
      throw new RepetitionLimitError();
    return this.#make.repeat(body, min, max);
  }

  #class(): CodePoints {
    const characters = this.#characters;
    const isComplement = characters.take("^");
    const ranges: (readonly [number, number])[] = [];
    for (let isFirst = true; isFirst || characters.peek() !== "]"; isFirst = false) {
      const first = this.#member(isFirst);
      const [from = 0] = first;
      if (first.length === 2 && characters.takeMatch(/^-(?!\])/)) {
        const [to] = this.#member(false);
        if (to === undefined || to < from)
          throw new UnsupportedGrammarError("it has a range that ends before it begins");
        ranges.push([from, to]);
      } else ranges.push(...rangesOf(first));
    }
    characters.next();
    const cased = this.#cased(codePoints(ranges));
    const set = isComplement ? outside(cased) : cased;
    if (set.length === 0) throw new UnsupportedGrammarError("it has a class without a character");
    return set;
  }

  /** Reads a member of a class, in which a leading bracket is literal. */
  #member(isFirst: boolean): CodePoints {
    const next = this.#characters.next();
    if (next === "[" && !isFirst && this.#characters.isAt(/^[:[]/))
      throw new UnsupportedGrammarError("it has a class in a class");
    return next === "\\" ? this.#escape() : pointOf(next);
  }

  #escape(): CodePoints {
    const characters = this.#characters;
    const letter = characters.next();
    const known = CLASSES[letter.toLowerCase()];
    if (known) return letter === letter.toLowerCase() ? known : outside(known);
    const control = CONTROLS[letter];
    if (control !== undefined) return oneCodePoint(control);
    const pair = letter === "u" ? readSurrogatePair(characters) : undefined;
    if (pair) return pair;
    if (letter === "x" || letter === "u") {
      const digits =
        letter === "x"
          ? /^(?:\{([\dA-Fa-f]{1,6})\}|([\dA-Fa-f]{2}))/
          : /^(?:\{([\dA-Fa-f]{1,6})\}|([\dA-Fa-f]{4}))/;
      const [, braced, plain] = characters.takeMatch(digits) ?? [];
      const point = Number.parseInt(braced ?? plain ?? "", 16);
      if (!(point <= 0x10ffff)) throw new UnsupportedGrammarError("it has an incomplete escape");
      return oneCodePoint(point);
    }
    if (/[a-zA-Z0-9]/.test(letter)) throw new UnsupportedGrammarError(`it has \\${letter}`);
    return pointOf(letter);
  }

  #set(set: CodePoints): Expression {
    return this.#make.set(this.#cased(set));
  }

  #cased(set: CodePoints): CodePoints {
    return this.#ignoresCase ? inBothCases(set) : set;
  }
}

/** @throws UnsupportedGrammarError for a repetition whose bounds are in the wrong order */
export function checkBounds(min: number, max: number): void {
  if (max < min) throw new UnsupportedGrammarError("it has a repetition that ends before it begins");
}

function boundsOf([text, min, comma, max, onlyMax]: RegExpExecArray): [min: number, max: number] {
  if (text === "*") return [0, Infinity];
  if (text === "+") return [1, Infinity];
  if (text === "?") return [0, 1];
  if (onlyMax !== undefined) return [0, onlyMax === "" ? Infinity : Number(onlyMax)];
  return [Number(min), comma === undefined ? Number(min) : max === "" ? Infinity : Number(max)];
}

const pointOf = (character: string): CodePoints => oneCodePoint(character.codePointAt(0) ?? 0);

/** Complement of a set within {@link TEXT}. */
const outside = (set: CodePoints): CodePoints => intersectionOf(TEXT, complementOf(set));

/** Adds the other case of all ASCII letters to a set. */
export function inBothCases(set: CodePoints): CodePoints {
  const shifted = (letters: CodePoints, shift: number): CodePoints =>
    intersectionOf(set, letters).map((point) => point + shift);
  return [shifted([0x41, 0x5a], 0x20), shifted([0x61, 0x7a], -0x20)].reduce(unionOf, set);
}
