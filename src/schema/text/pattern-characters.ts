import { NotRegularError } from "../schema-errors.ts";

/** Reads the characters of a pattern, whose syntax RegExp has checked. */
export class PatternCharacters {
  /** True when it is valid with the flag `u`. */
  readonly isStrict: boolean;
  readonly #characters: readonly string[];
  readonly #groups: readonly string[];
  #at = 0;

  constructor(source: string, isStrict: boolean) {
    this.isStrict = isStrict;
    this.#characters = Array.from(source);
    this.#groups = source.match(/\(\?<(?![=!])/g) ?? [];
  }

  /** True when groups have names: then `\k` refers to one also without the flag `u`. */
  get hasNamedGroups(): boolean {
    return this.#groups.length > 0;
  }

  peek(): string | undefined {
    return this.#characters[this.#at];
  }

  next(): string {
    const next = this.#characters[this.#at++];
    if (next === undefined) throw new NotRegularError("it ends too early");
    return next;
  }

  /** The character that was read last. */
  before(): string {
    return this.#characters[this.#at - 1] ?? "";
  }

  take(character: string): boolean {
    if (this.peek() !== character) return false;
    this.#at += 1;
    return true;
  }

  takeAll(text: string): boolean {
    if (this.#ahead(text.length) !== text) return false;
    this.#at += text.length;
    return true;
  }

  /** Takes what a regular expression finds here, within the next few characters. */
  takeMatch(expression: RegExp): RegExpExecArray | undefined {
    const found = expression.exec(this.#ahead(LONGEST_MATCH)) ?? undefined;
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
    if (min > MAX_LEAST || this.takeMatch(/^\{(?:\d+,)?\d{35}/))
      throw new NotRegularError("it repeats something too many times");
    if (!found) return undefined;
    if (found[2] === undefined) return [min, min];
    return [min, found[3] === "" ? Infinity : Number(found[3])];
  }

  #ahead(length: number): string {
    return this.#characters.slice(this.#at, this.#at + length).join("");
  }
}

/** Beyond, nothing that a model writes is long enough. */
const MAX_LEAST = 1_000_000_000;
/** A property with its longest name, or a quantifier with two large numbers. */
const LONGEST_MATCH = 80;
