import { type CodePoints, DIGITS, pointOf, without, WORD } from "../code-point-set.ts";

/** Error for a grammar or regular expression that cannot be enforced; the message follows "it". */
export class UnenforceableError extends Error {
  override readonly name = "UnenforceableError";
}

/** Largest bound of a repetition. */
export const MAX_REPETITIONS = 9999;

/** Error for a repetition with too large a bound. */
export class RepetitionLimitError extends UnenforceableError {
  constructor() {
    super(`repeats something more than ${MAX_REPETITIONS} times`);
  }
}

/** Deepest nesting of groups. */
const MAX_DEPTH = 50;

const REPETITION = /^(?:[*+?]|\{\d{1,39}(?:,\d{0,39})?\}|\{,\d{0,39}\})/;

const BLANKS: readonly CodePoints[] = [
  [0x09, 0x0a],
  [0x0d, 0x0d],
  [0x20, 0x20],
];
const CLASSES: Readonly<Record<string, readonly CodePoints[]>> = { d: DIGITS, w: WORD, s: BLANKS };
const CONTROLS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11, a: 7, 0: 0 };
const LINE_END: readonly CodePoints[] = [[0x0a, 0x0a]];

/**
 * Rewrites a regular expression of Rust or Python as an ECMA-262 pattern without anchors, complements and flags. It has
 * to match the complete text, so anchors at its ends have no effect.
 * @param flags i and s; m, u and l are ignored
 * @throws UnenforceableError for lookarounds, backreferences, word boundaries and the like
 */
export function toRegularPattern(expression: string, flags = ""): string {
  const [head = "", inline = ""] = /^\(\?([a-z]+)\)/.exec(expression) ?? [];
  return new ExpressionReader(expression.slice(head.length), flags + inline, head.length).read();
}

class ExpressionReader {
  readonly #characters: readonly string[];
  readonly #ignoresCase: boolean;
  readonly #dot: string;
  readonly #skipped: number;
  #at = 0;

  /** @param skipped number of characters before the expression, for positions in errors */
  constructor(expression: string, flags: string, skipped: number) {
    this.#skipped = skipped;
    const unknown = /[^imsul]/.exec(flags)?.[0];
    if (unknown !== undefined) throw new UnenforceableError(`has the flag ${unknown}`);
    this.#characters = Array.from(expression);
    this.#ignoresCase = flags.includes("i");
    this.#dot = setPattern(outside(flags.includes("s") ? [] : LINE_END));
  }

  read(): string {
    const alternatives = this.#alternatives(0);
    if (this.#at < this.#characters.length) throw new UnenforceableError("has a group that is closed twice");
    return alternatives.length === 1 ? alternatives.join("") : `(?:${alternatives.join("|")})`;
  }

  #alternatives(depth: number): string[] {
    const alternatives: string[] = [];
    do {
      if (depth === 0 && !this.#take("^")) this.#takeText("\\A");
      alternatives.push(this.#sequence(depth));
      if (depth === 0 && !this.#take("$") && !this.#takeText("\\z")) this.#takeText("\\Z");
    } while (this.#take("|"));
    return alternatives;
  }

  /** Reads up to the end of an alternative. */
  #sequence(depth: number): string {
    let result = "";
    for (let next = this.#peek(); next !== undefined && !"|)$".includes(next); next = this.#peek()) {
      if (next === "\\" && /[zZ]/.test(this.#characters[this.#at + 1] ?? "")) break;
      result += this.#atom(depth) + this.#quantifier();
    }
    return result;
  }

  #atom(depth: number): string {
    const next = this.#next();
    if (next === "(") return this.#group(depth + 1);
    if (next === "[") return this.#class();
    if (next === ".") return this.#dot;
    if (next === "\\") return this.#set(this.#escape());
    if ("^*+?".includes(next) || (next === "{" && REPETITION.test(`{${this.#rest()}`)))
      throw new UnenforceableError(`has ${next} where it means nothing or an anchor`);
    return this.#set([pointOf(next)]);
  }

  #group(depth: number): string {
    const begin = this.#at;
    if (depth > MAX_DEPTH) throw new UnenforceableError("is nested too deeply");
    if (this.#take("?") && !this.#take(":")) {
      const name = /^P?<[A-Za-z_]\w{0,99}>/.exec(this.#rest())?.[0];
      if (name === undefined)
        throw new UnenforceableError("has a lookaround, a flag or another special group");
      this.#at += name.length;
    }
    const alternatives = this.#alternatives(depth);
    if (this.#peek() === undefined)
      throw new UnenforceableError(`has a group that is not closed, at character ${this.#skipped + begin}`);
    if (!this.#take(")"))
      throw new UnenforceableError(`has an anchor in a group, at character ${this.#skipped + this.#at + 1}`);
    return `(?:${alternatives.join("|")})`;
  }

  #quantifier(): string {
    if (!"*+?{".includes(this.#peek() ?? " ")) return "";
    const found = REPETITION.exec(this.#rest())?.[0] ?? "";
    const isEndless = found === "" && /^\{(?:\d*,)?\d{40}/.test(this.#rest());
    if (isEndless || found.match(/\d+/g)?.some((times) => Number(times) > MAX_REPETITIONS))
      throw new RepetitionLimitError();
    this.#at += found.length;
    if (found === "") return "";
    this.#take("?"); // a lazy quantifier matches the same texts
    if (this.#peek() === "+") throw new UnenforceableError("has a possessive quantifier");
    return found.replace("{,", "{0,");
  }

  #class(): string {
    const isComplement = this.#take("^");
    const set: CodePoints[] = [];
    let isFirst = true;
    while (isFirst || this.#peek() !== "]") {
      const first = this.#member(isFirst);
      isFirst = false;
      const [from] = first;
      if (from && first.length === 1 && this.#peek() === "-" && this.#characters[this.#at + 1] !== "]") {
        this.#at += 1;
        const [to] = this.#member(false);
        if (!to || to[0] < from[0]) throw new UnenforceableError("has a range that ends before it begins");
        set.push([from[0], to[0]]);
      } else set.push(...first);
    }
    this.#at += 1;
    const cased = this.#ignoresCase ? inBothCases(set) : set;
    const meant = isComplement ? outside(cased) : cased;
    if (meant.length === 0) throw new UnenforceableError("has a class without a character");
    return setPattern(meant);
  }

  /** Reads a member of a class, in which a leading bracket is literal. */
  #member(isFirst: boolean): readonly CodePoints[] {
    const next = this.#next();
    if (next === "[" && !isFirst && /^[:[]/.test(this.#rest()))
      throw new UnenforceableError("has a class in a class");
    return next === "\\" ? this.#escape() : [pointOf(next)];
  }

  #escape(): readonly CodePoints[] {
    const letter = this.#next();
    const known = CLASSES[letter.toLowerCase()];
    if (known) return letter === letter.toLowerCase() ? known : outside(known);
    const control = CONTROLS[letter];
    if (control !== undefined) return [[control, control]];
    if (letter === "x" || letter === "u") {
      const [text = "", braced, plain] =
        (letter === "x"
          ? /^(?:\{([\dA-Fa-f]{1,6})\}|([\dA-Fa-f]{2}))/
          : /^(?:\{([\dA-Fa-f]{1,6})\}|([\dA-Fa-f]{4}))/
        ).exec(this.#rest()) ?? [];
      const point = Number.parseInt(braced ?? plain ?? "", 16);
      if (!(point <= 0x10ffff)) throw new UnenforceableError("has an incomplete escape");
      this.#at += text.length;
      return [[point, point]];
    }
    if (/[a-zA-Z0-9]/.test(letter)) throw new UnenforceableError(`has \\${letter}`);
    return [pointOf(letter)];
  }

  #set(set: readonly CodePoints[]): string {
    return setPattern(this.#ignoresCase ? inBothCases(set) : set);
  }

  #rest(): string {
    return this.#characters.slice(this.#at, this.#at + 110).join("");
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #next(): string {
    const next = this.#characters[this.#at++];
    if (next === undefined) throw new UnenforceableError("ends too early");
    return next;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at += 1;
    return true;
  }

  #takeText(text: string): boolean {
    if (!this.#rest().startsWith(text)) return false;
    this.#at += text.length;
    return true;
  }
}

/** Code points of complements such as `[^a]`: no control characters except tab and line ends. */
const TEXT: readonly CodePoints[] = [
  [0x09, 0x0a],
  [0x0d, 0x0d],
  [0x20, 0x7e],
  [0x80, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** Complement of a set within {@link TEXT}. */
function outside(set: readonly CodePoints[]): CodePoints[] {
  return without(TEXT, set);
}

/** Adds the other case of all ASCII letters to a set. */
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

/** Writes a set as a pattern of one character, without a complement. */
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
