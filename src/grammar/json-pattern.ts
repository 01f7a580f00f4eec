import {
  BLANKS,
  type CodePoints,
  DIGITS,
  escapedIn,
  LINE_ENDS,
  pointOf,
  unescapedIn,
  unescapedOutside,
  WORD,
} from "./code-point-set.ts";

/** Error for a pattern that llama.cpp's grammars cannot express: a lookahead, a backreference, an inner anchor. */
class NotRegularError extends Error {
  override readonly name = "NotRegularError";
}

/** Deepest nesting of groups that llama.cpp can parse. */
const MAX_DEPTH = 100;

const CLASSES: Readonly<Record<string, readonly CodePoints[]>> = { d: DIGITS, w: WORD, s: BLANKS };
const CONTROLS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11, b: 8, 0: 0 };
/** Characters for which JSON has a short escape. */
const JSON_LETTERS: Readonly<Record<number, string>> = {
  8: "b",
  9: "t",
  10: "n",
  12: "f",
  13: "r",
  0x22: '"',
  0x5c: "\\",
};

/**
 * Rewrites the pattern of a JSON schema so that llama.cpp can convert it and it matches the encoded string between the
 * quotes. llama.cpp does not encode: it would allow unescaped quotes and line breaks from a class, which is not JSON.
 * And it accepts any string for a pattern with `\d`, without anchors or with a lazy quantifier.
 *
 * Complements (`.`, `[^…]`, `\D`) do not match characters that need an escape in JSON.
 *
 * @returns undefined when a grammar cannot express the pattern
 */
export function toJsonPattern(pattern: string): string | undefined {
  try {
    return new PatternReader(pattern).read();
  } catch (error) {
    if (error instanceof NotRegularError) return undefined;
    throw error;
  }
}

class PatternReader {
  readonly #characters: readonly string[];
  /** Cache of the patterns of single characters. */
  readonly #singles = new Map<string, string>();
  #at = 0;

  constructor(pattern: string) {
    this.#characters = Array.from(pattern);
  }

  read(): string {
    const any = `${characterPattern(unescapedOutside([]), [])}*`;
    const alternatives: string[] = [];
    do {
      const start = this.#take("^") ? "" : any;
      const middle = this.#sequence(0);
      alternatives.push(start + middle + (this.#take("$") ? "" : any));
    } while (this.#take("|"));
    if (this.#at < this.#characters.length) throw new NotRegularError();
    return alternatives.length === 1 ? `^${alternatives[0]}$` : `^(?:${alternatives.join("|")})$`;
  }

  /** Reads up to the end of an alternative. */
  #sequence(depth: number): string {
    let result = "";
    for (let next = this.#peek(); next !== undefined && !"|)$".includes(next); next = this.#peek()) {
      result += this.#atom(depth) + this.#quantifier();
    }
    return result;
  }

  #atom(depth: number): string {
    const next = this.#next();
    if (next === "(") return this.#group(depth + 1);
    if (next === "[") return this.#class();
    if (next === ".") return characterPattern(unescapedOutside(LINE_ENDS), []);
    if (next === "\\") {
      const { set, isComplement } = this.#escape(false);
      return isComplement ? characterPattern(unescapedOutside(set), []) : setPattern(set);
    }
    if ("^*+?{}]".includes(next)) throw new NotRegularError();
    let pattern = this.#singles.get(next);
    if (pattern === undefined) this.#singles.set(next, (pattern = setPattern([pointOf(next)])));
    return pattern;
  }

  #group(depth: number): string {
    if (depth > MAX_DEPTH) throw new NotRegularError();
    if (this.#take("?") && !this.#take(":")) throw new NotRegularError();
    const alternatives = [this.#sequence(depth)];
    while (this.#take("|")) alternatives.push(this.#sequence(depth));
    if (!this.#take(")")) throw new NotRegularError();
    return `(?:${alternatives.join("|")})`;
  }

  #quantifier(): string {
    if (!"*+?{".includes(this.#peek() ?? " ")) return "";
    const rest = this.#characters.slice(this.#at, this.#at + 24).join("");
    const found = /^(?:[*+?]|\{\d{1,9}(?:,\d{0,9})?\})/.exec(rest)?.[0] ?? "";
    this.#at += found.length;
    if (found !== "") this.#take("?"); // a lazy quantifier matches the same strings
    return found;
  }

  #class(): string {
    const isComplement = this.#take("^");
    const set: CodePoints[] = [];
    while (!this.#take("]")) {
      const first = this.#member();
      const [from] = first;
      if (from && this.#peek() === "-" && this.#characters[this.#at + 1] !== "]") {
        this.#at += 1;
        const [to] = this.#member();
        const isRange = to && first.length === 1 && from[0] === from[1] && to[0] === to[1];
        if (!isRange || to[0] < from[0]) throw new NotRegularError();
        set.push([from[0], to[0]]);
      } else {
        set.push(...first);
      }
    }
    return isComplement ? characterPattern(unescapedOutside(set), []) : setPattern(set);
  }

  #member(): readonly CodePoints[] {
    const next = this.#next();
    if (next !== "\\") return [pointOf(next)];
    const { set, isComplement } = this.#escape(true);
    return isComplement ? unescapedOutside(set) : set;
  }

  #escape(isInClass: boolean): { set: readonly CodePoints[]; isComplement: boolean } {
    const letter = this.#next();
    const known = CLASSES[letter.toLowerCase()];
    if (known) return { set: known, isComplement: letter !== letter.toLowerCase() };
    if (letter === "b" && !isInClass) throw new NotRegularError();
    const control = CONTROLS[letter];
    if (control !== undefined) return single(control);
    if (letter === "x") return single(this.#hex(2));
    if (letter === "u") return single(this.#take("{") ? this.#hexToBrace() : this.#hex(4));
    // Backreferences, properties and the like.
    if (/[a-zA-Z0-9]/.test(letter)) throw new NotRegularError();
    return { set: [pointOf(letter)], isComplement: false };
  }

  #hex(digits: number): number {
    const text = this.#characters.slice(this.#at, this.#at + digits).join("");
    this.#at += digits;
    if (text.length < digits || !/^[\dA-Fa-f]+$/.test(text)) throw new NotRegularError();
    return Number.parseInt(text, 16);
  }

  #hexToBrace(): number {
    const end = this.#characters.indexOf("}", this.#at);
    const point = this.#hex(Math.max(1, Math.min(6, end - this.#at)));
    if (!this.#take("}")) throw new NotRegularError();
    return point;
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #next(): string {
    const next = this.#characters[this.#at++];
    if (next === undefined) throw new NotRegularError();
    return next;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at += 1;
    return true;
  }
}

function single(point: number): { set: readonly CodePoints[]; isComplement: boolean } {
  return { set: [[point, point]], isComplement: false };
}

const setPattern = (set: readonly CodePoints[]): string => characterPattern(unescapedIn(set), escapedIn(set));

/** Pattern of one character: one of the ranges unescaped, or one of the others by its JSON escape. */
function characterPattern(plain: readonly CodePoints[], escaped: readonly number[]): string {
  const ranges = plain.map(([from, to]) =>
    from === to ? classMember(from) : `${classMember(from)}-${classMember(to)}`,
  );
  const choices = [...(ranges.length > 0 ? [`[${ranges.join("")}]`] : []), ...escaped.map(jsonEscape)];
  if (choices.length === 0) throw new NotRegularError();
  return choices.length === 1 && escaped.length === 0 ? choices.join("") : `(?:${choices.join("|")})`;
}

/** Character in a class: letters, digits and those above U+FFFF unescaped, others by their code. */
function classMember(point: number): string {
  const text = String.fromCodePoint(point);
  return point > 0xffff || /[A-Za-z0-9]/.test(text) ? text : `\\u${point.toString(16).padStart(4, "0")}`;
}

function jsonEscape(point: number): string {
  const letter = JSON_LETTERS[point];
  const rest = letter ?? `u${point.toString(16).padStart(4, "0")}`;
  return `\\\\${rest === "\\" ? "\\\\" : rest}`;
}
