import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import { type Decimal, digitsAt, floorOf, isMultiple, negated } from "./decimal.ts";
import { type Limit, type NumberBounds, type NumberRange, rangeOf } from "./number-bounds.ts";
import { writeDecimals } from "./write-decimals.ts";
import { writeMultiples } from "./write-multiples.ts";

/** So many numbers are written one by one. */
const MAX_LISTED = 200n;

/**
 * True when no number is within the bounds, as far as that is seen without trying all.
 */
export function hasNoNumber(bounds: NumberBounds): boolean {
  const range = rangeOf(bounds);
  if (!range) return true;
  return listed(range)?.length === 0;
}

/**
 * Writes the JSON numbers within bounds, without exponents: each number that it allows, read as a double, satisfies the
 * bounds. Numbers have 20 digits before the point and 15 after it at most, beside what a bound needs.
 * @returns the name of the rule; undefined when the grammar cannot express it, or there is no such number
 */
export function writeNumber(writer: GrammarWriter, bounds: NumberBounds): string | undefined {
  const range = rangeOf(bounds);
  if (!range) return undefined;
  const all = listed(range);
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
  // A side that exists and cannot be written makes the whole impossible to write.
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

/** Numbers from zero on. */
function positiveSide({ low, high }: NumberRange): { low: Limit; high?: Limit | undefined } | undefined {
  if (high && (high.at.digits < 0n || (high.at.digits === 0n && high.isExclusive))) return undefined;
  return { low: low && low.at.digits >= 0n ? low : { at: ZERO, isExclusive: false }, high };
}

/** Numbers below zero, without their sign. */
function negativeSide({ low, high }: NumberRange): { low: Limit; high?: Limit | undefined } | undefined {
  if (low && low.at.digits >= 0n) return undefined;
  const from =
    high && high.at.digits < 0n
      ? { at: negated(high.at), isExclusive: high.isExclusive }
      : { at: ZERO, isExclusive: true };
  return { low: from, high: low && { at: negated(low.at), isExclusive: low.isExclusive } };
}

/** The least number of which all multiples of all steps are multiples. */
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

/** All numbers, when they are few. */
function listed({ low, high, steps }: NumberRange): string[] | undefined {
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

/** A decimal as JSON writes it. */
function textOf({ digits, scale }: Decimal): string {
  const sign = digits < 0n ? "-" : "";
  const all = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, "0");
  const fraction = all.slice(all.length - scale).replace(/0+$/, "");
  return `${sign}${all.slice(0, all.length - scale)}${scale > 0 && fraction !== "" ? `.${fraction}` : ""}`;
}
