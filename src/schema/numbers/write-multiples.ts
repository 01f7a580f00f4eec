import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { Decimal } from "./decimal.ts";
import type { Limit } from "./number-bounds.ts";
import type { Side } from "./write-decimals.ts";

/** Most rules: one for each remainder and number of digits that follow. */
const MAX_RULES = 1_200;
/** Integers of so many digits are exact as doubles. */
const MAX_DIGITS = 15;
/** Fewer digits would leave out numbers that answers have. */
const LEAST_DIGITS = 5;

/**
 * Writes the multiples of a step within a range, without sign.
 * @returns a sequence of GBNF; "" when there is none; undefined when that takes too many rules
 */
export function writeMultiples(writer: GrammarWriter, side: Side, step: Decimal): string | undefined {
  // Multiples of 0.25 are those of 25, with the point before the last two digits; those of 60 those of 6 before a zero.
  const places = step.scale;
  let [unit, zeros] = [step.digits, 0];
  if (places === 0) while (unit % 10n === 0n) [unit, zeros] = [unit / 10n, zeros + 1];
  const low = inUnits(side.low, places, zeros, 1n);
  const high = side.high && inUnits(side.high, places, zeros, -1n);
  if (high !== undefined && (high < low || (high / unit) * unit < low)) return "";
  const most = Math.min(MAX_DIGITS, Math.floor(MAX_RULES / Number(unit)));
  const length = high === undefined ? most : Math.max(high.toString().length, places + 1);
  if (length > most || length <= places || (high === undefined && most < LEAST_DIGITS)) return undefined;
  const last = high ?? 10n ** BigInt(length) - 1n;
  if (low > last) return undefined;
  const choices = low === 0n && places === 0 ? ['"0"'] : [];
  const digits = new Multiples(writer, low, last, length, Number(unit), places).write();
  if (digits !== "") choices.push(zeros > 0 ? `${digits} "${"0".repeat(zeros)}"` : digits);
  return choices.length === 0 ? "" : writer.rule("multiple", choices.join(" | "));
}

/** A bound, counted in 10^zeros or 10^-places, rounded into the range. */
function inUnits({ at, isExclusive }: Limit, places: number, zeros: number, inward: bigint): bigint {
  const value = at.digits * 10n ** BigInt(places);
  const unit = 10n ** BigInt(at.scale + zeros);
  const isWhole = value % unit === 0n;
  if (inward > 0n) return value / unit + (isWhole && !isExclusive ? 0n : 1n);
  return value / unit - (isWhole && isExclusive ? 1n : 0n);
}

class Multiples {
  readonly #writer: GrammarWriter;
  readonly #low: string;
  readonly #high: string;
  readonly #unit: number;
  readonly #places: number;
  readonly #known = new Map<string, string | undefined>();

  constructor(
    writer: GrammarWriter,
    low: bigint,
    high: bigint,
    length: number,
    unit: number,
    places: number,
  ) {
    this.#writer = writer;
    this.#low = low.toString().padStart(length, "0");
    this.#high = high.toString().padStart(length, "0");
    this.#unit = unit;
    this.#places = places;
  }

  /** Numbers of each length, without zeros before them. */
  write(): string {
    const choices: string[] = [];
    for (let left = this.#high.length; left > this.#places; left -= 1) {
      const before = this.#high.length - left;
      if (/[1-9]/.test(this.#low.slice(0, before))) break;
      const isBelowHigh = /[1-9]/.test(this.#high.slice(0, before));
      const isLastBeforePoint = this.#places > 0 && left === this.#places + 1;
      const body = this.#body(left, true, !isBelowHigh, 0, isLastBeforePoint ? 0 : 1);
      if (body !== undefined) choices.push(body);
    }
    return choices.length === 0 ? "" : this.#writer.rule("multiple", choices.join(" | "));
  }

  /** What follows where so many digits are left; undefined when no digits fit. */
  #rest(left: number, atLow: boolean, atHigh: boolean, remainder: number): string | undefined {
    if (left === 0) return remainder === 0 ? "" : undefined;
    const key = `${left},${atLow},${atHigh},${remainder}`;
    if (this.#known.has(key)) return this.#known.get(key);
    const body = this.#body(left, atLow, atHigh, remainder, 0);
    const rule = body === undefined ? undefined : this.#writer.rule("multiple", body);
    this.#known.set(key, rule);
    return rule;
  }

  #body(left: number, atLow: boolean, atHigh: boolean, remainder: number, least: number): string | undefined {
    const at = this.#high.length - left;
    const [low, high] = [Number(this.#low[at]), Number(this.#high[at])];
    const digitsOf = new Map<string, string>();
    for (let digit = Math.max(least, atLow ? low : 0); digit <= (atHigh ? high : 9); digit += 1) {
      const next = (remainder * 10 + digit) % this.#unit;
      const rest = this.#rest(left - 1, atLow && digit === low, atHigh && digit === high, next);
      if (rest !== undefined) digitsOf.set(rest, `${digitsOf.get(rest) ?? ""}${digit}`);
    }
    if (digitsOf.size === 0) return undefined;
    const choices = [...digitsOf].map(([rest, digits]) =>
      `${digits.length === 1 ? `"${digits}"` : `[${digits}]`} ${rest}`.trimEnd(),
    );
    const choice = choices.length === 1 ? choices.join("") : `(${choices.join(" | ")})`;
    return left === this.#places && left > 0 ? `"." ${choice}` : choice;
  }
}
