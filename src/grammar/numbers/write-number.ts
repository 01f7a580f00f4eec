import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import {
  type Decimal,
  digitsAt,
  floorOf,
  isMultiple,
  type Limit,
  negated,
  type NumberBounds,
  type NumberRange,
  rangeOf,
} from "./number-bounds.ts";
import { type Side, writeDecimals } from "./write-decimals.ts";

/** Most numbers that are written as a list. */
const MAX_LISTED = 200n;

/** True if no number is within the bounds; may be false for an empty range with many candidates. */
export function hasNoNumber(bounds: NumberBounds): boolean {
  const range = rangeOf(bounds);
  if (!range) return true;
  return enumerate(range)?.length === 0;
}

/**
 * Writes the JSON numbers within bounds, without exponents. Every allowed number satisfies the bounds as a double.
 * Numbers have at most 20 digits before the point and 15 after it, unless a bound has more.
 * @returns name of the rule; undefined if the grammar cannot express it, or there is no such number
 */
export function writeNumber(writer: GrammarWriter, bounds: NumberBounds): string | undefined {
  const range = rangeOf(bounds);
  if (!range) return undefined;
  const all = enumerate(range);
  const hint = bounds.isInteger ? "integer" : "number";
  if (all)
    return all.length === 0 ? undefined : writer.rule(hint, all.map((text) => `"${text}"`).join(" | "));
  const step = commonStep(range.steps);
  const sides = [positiveSide(range), negativeSide(range)].map((side) => {
    if (!side) return undefined;
    if (!step) return writeDecimals(writer, side, undefined);
    if (step.digits === 1n) return writeDecimals(writer, side, step.scale);
    return writeMultiples(writer, side, step);
  });
  const [positive, negative] = sides;
  // If one sign cannot be written, neither can the range.
  if ((positive === undefined && positiveSide(range)) || (negative === undefined && negativeSide(range)))
    return undefined;
  const choices = [
    ...(positive === undefined || positive === "" ? [] : [positive]),
    ...(negative === undefined || negative === "" ? [] : [`"-" ${negative}`]),
  ];
  if (positive !== undefined && positive === negative) return writer.rule(hint, `"-"? ${positive}`);
  return choices.length === 0 ? undefined : writer.rule(hint, choices.join(" | "));
}

const ZERO: Decimal = { digits: 0n, scale: 0 };

/** Returns the numbers of a range from zero on. */
function positiveSide({ low, high }: NumberRange): { low: Limit; high?: Limit | undefined } | undefined {
  if (high && (high.at.digits < 0n || (high.at.digits === 0n && high.isExclusive))) return undefined;
  return { low: low && low.at.digits >= 0n ? low : { at: ZERO, isExclusive: false }, high };
}

/** Returns the negative numbers of a range, without sign. */
function negativeSide({ low, high }: NumberRange): { low: Limit; high?: Limit | undefined } | undefined {
  if (low && low.at.digits >= 0n) return undefined;
  const from =
    high && high.at.digits < 0n
      ? { at: negated(high.at), isExclusive: high.isExclusive }
      : { at: ZERO, isExclusive: true };
  return { low: from, high: low && { at: negated(low.at), isExclusive: low.isExclusive } };
}

/** Least common multiple of the steps. */
function commonStep(steps: readonly Decimal[]): Decimal | undefined {
  if (steps.length === 0) return undefined;
  const scale = Math.max(...steps.map((step) => step.scale));
  let digits = 1n;
  for (const step of steps) {
    const of = digitsAt(step, scale);
    digits = (digits * of) / greatestDivisor(digits, of);
  }
  let common: Decimal = { digits, scale };
  while (common.scale > 0 && common.digits % 10n === 0n)
    common = { digits: common.digits / 10n, scale: common.scale - 1 };
  return common;
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestDivisor(b, a % b);
}

/** Lists the numbers of a range; undefined if they are too many. */
function enumerate({ low, high, steps }: NumberRange): string[] | undefined {
  const step = commonStep(steps);
  if (!step || !low || !high) return undefined;
  const scale = Math.max(step.scale, low.at.scale, high.at.scale);
  const unit = digitsAt(step, scale);
  const [from, to] = [digitsAt(low.at, scale), digitsAt(high.at, scale)];
  if ((to - from) / unit > MAX_LISTED) return undefined;
  const texts: string[] = [];
  for (let factor = -floorOf({ digits: -from, scale: 0 }) / unit - 1n; factor * unit <= to; factor += 1n) {
    const digits = factor * unit;
    if (digits < from || (low.isExclusive && digits === from) || (high.isExclusive && digits === to))
      continue;
    const value: Decimal = { digits, scale };
    if (steps.every((each) => isMultiple(value, each))) texts.push(textOf(value));
  }
  return texts;
}

/** Writes a decimal as JSON. */
function textOf({ digits, scale }: Decimal): string {
  const sign = digits < 0n ? "-" : "";
  const all = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, "0");
  const fraction = all.slice(all.length - scale).replace(/0+$/, "");
  return `${sign}${all.slice(0, all.length - scale)}${scale > 0 && fraction !== "" ? `.${fraction}` : ""}`;
}

/** Most rules of multiples: one per remainder and number of remaining digits. */
const MAX_RULES = 1_200;
/** Digits up to which all integers are exact as doubles. */
const MAX_DIGITS = 15;
/** Fewest digits of multiples without an upper bound, as fewer would exclude common numbers. */
const MIN_DIGITS = 5;

/**
 * Writes the multiples of a step within a range, without sign.
 * @returns a sequence of GBNF; "" if there is none; undefined if it takes too many rules
 */
function writeMultiples(writer: GrammarWriter, side: Side, step: Decimal): string | undefined {
  // Multiples of 0.25 are those of 25 with the point before the last two digits; those of 60 are those of 6 before a
  // zero.
  const places = step.scale;
  let [unit, zeros] = [step.digits, 0];
  if (places === 0) while (unit % 10n === 0n) [unit, zeros] = [unit / 10n, zeros + 1];
  const low = inUnits(side.low, places, zeros, 1n);
  const high = side.high && inUnits(side.high, places, zeros, -1n);
  if (high !== undefined && (high < low || (high / unit) * unit < low)) return "";
  const most = Math.min(MAX_DIGITS, Math.floor(MAX_RULES / Number(unit)));
  const length = high === undefined ? most : Math.max(high.toString().length, places + 1);
  if (length > most || length <= places || (high === undefined && most < MIN_DIGITS)) return undefined;
  const last = high ?? 10n ** BigInt(length) - 1n;
  if (low > last) return undefined;
  const choices = low === 0n && places === 0 ? ['"0"'] : [];
  const digits = new Multiples(writer, low, last, length, Number(unit), places).write();
  if (digits !== "") choices.push(zeros > 0 ? `${digits} "${"0".repeat(zeros)}"` : digits);
  return choices.length === 0 ? "" : writer.rule("multiple", choices.join(" | "));
}

/** Converts a bound to units of 10^zeros or 10^-places, rounded into the range. */
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

  /** Writes the numbers of each length, without leading zeros. */
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

  /** Writes the remaining digits; undefined if there are none. */
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
