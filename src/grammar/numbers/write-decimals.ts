import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import { digitsAt, floorOf, type Limit } from "./number-bounds.ts";

/** Most digits after the point, unless a bound has more. */
const MAX_FRACTION = 15;
/** Digits up to which different decimals are different doubles. */
const EXACT_DIGITS = 15;

/** Range of non-negative numbers. */
export interface Side {
  readonly low: Limit;
  readonly high?: Limit | undefined;
}

/** Remaining digits of a bound's fraction. */
interface Edge {
  readonly digits: string;
  readonly isExclusive: boolean;
}

/**
 * Writes the decimals of a range, without sign.
 * @param fraction most digits after the point; undefined: as many as are exact
 * @returns a sequence of GBNF; "" if the range is empty
 */
export function writeDecimals(writer: GrammarWriter, side: Side, fraction: number | undefined): string {
  const places = fraction ?? MAX_FRACTION;
  const { low, high } = side;
  if (fraction === 0) {
    const first = ceiling(low);
    const last = high && lastInteger(high);
    return last !== undefined && first > last ? "" : writeIntegers(writer, first, last);
  }
  const [from, to] = [floorOf(low.at), high && floorOf(high.at)];
  const anyFraction = `("." [0-9]{1,${places}})?`;
  const choices: string[] = [];
  const add = (whole: string, rest: string | undefined): void => {
    if (rest !== undefined) choices.push(`${whole} ${rest}`.trimEnd());
  };
  const lowEdge = edgeOf(low, from);
  const highEdge = high && edgeOf(high, to ?? 0n);
  const isFromWhole = lowEdge.digits === "" && !lowEdge.isExclusive;
  if (from === to && highEdge) {
    add(`"${from}"`, fractionOf(writer, lowEdge, highEdge, places, from));
  } else {
    const firstFree = isFromWhole ? from : from + 1n;
    if (!isFromWhole) add(`"${from}"`, fractionOf(writer, lowEdge, undefined, places, from));
    if (to === undefined) add(writeIntegers(writer, firstFree, undefined), anyFraction);
    else {
      if (firstFree <= to - 1n) add(writeIntegers(writer, firstFree, to - 1n), anyFraction);
      if (highEdge) add(`"${to}"`, fractionOf(writer, undefined, highEdge, places, to));
    }
  }
  if (choices.length === 0) return "";
  return writer.rule("decimal", choices.join(" | "));
}

function ceiling({ at, isExclusive }: Limit): bigint {
  const floor = floorOf(at);
  const isWhole = digitsAt({ digits: floor, scale: 0 }, at.scale) === at.digits;
  return isWhole && !isExclusive ? floor : floor + 1n;
}

function lastInteger({ at, isExclusive }: Limit): bigint {
  const floor = floorOf(at);
  const isWhole = digitsAt({ digits: floor, scale: 0 }, at.scale) === at.digits;
  return isWhole && isExclusive ? floor - 1n : floor;
}

function edgeOf({ at, isExclusive }: Limit, whole: bigint): Edge {
  const rest = at.digits - digitsAt({ digits: whole, scale: 0 }, at.scale);
  const digits = rest === 0n ? "" : rest.toString().padStart(at.scale, "0").replace(/0+$/, "");
  return { digits, isExclusive };
}

/** Writes the point and the digits after it, optional if allowed; undefined if there is no such fraction. */
function fractionOf(
  writer: GrammarWriter,
  low: Edge | undefined,
  high: Edge | undefined,
  places: number,
  whole: bigint,
): string | undefined {
  const exact = EXACT_DIGITS - (whole === 0n ? 0 : whole.toString().length);
  const digits = digitsBetween(writer, low, high, places, exact);
  const mayBeWhole = endsLow(low) && endsHigh(high);
  if (digits === undefined) return mayBeWhole ? "" : undefined;
  return mayBeWhole ? `("." ${digits})?` : `"." ${digits}`;
}

/** True if a number may end before the remaining digits of a bound. */
const endsLow = (low: Edge | undefined): boolean => !low || (low.digits === "" && !low.isExclusive);
const endsHigh = (high: Edge | undefined): boolean => !high || high.digits !== "" || !high.isExclusive;

/** Writes one or more digits between the remaining digits of two bounds. */
function digitsBetween(
  writer: GrammarWriter,
  low: Edge | undefined,
  high: Edge | undefined,
  places: number,
  exact: number,
): string | undefined {
  if (places <= 0 || (high?.digits === "" && (high.isExclusive || !endsLow(low)))) return undefined;
  const isPastLow = endsLow(low);
  if (isPastLow && !high) return `[0-9]{1,${places}}`;
  if (isPastLow && high?.digits === "") return `"0"{1,${places}}`;
  if (low?.digits === "" && !high) return justAbove(Math.min(places, exact));
  const first = low && low.digits !== "" ? Number(low.digits[0]) : 0;
  const last = high ? (high.digits === "" ? 0 : Number(high.digits[0])) : 9;
  const choices: string[] = [];
  for (let digit = first; digit <= last;) {
    const nextLow = low && digit === first ? shortened(low) : undefined;
    const nextHigh = high && digit === last ? shortened(high) : undefined;
    // All digits between those of the bounds have the same continuation.
    const until = nextLow || nextHigh ? digit : high ? last - 1 : last;
    const mayEnd = endsLow(nextLow) && endsHigh(nextHigh);
    const rest = digitsBetween(writer, nextLow, nextHigh, places - 1, exact - 1);
    const set = digit === until ? `"${digit}"` : `[${digit}-${until}]`;
    if (rest === undefined) {
      if (mayEnd) choices.push(set);
    } else choices.push(mayEnd ? `${set} (${rest})?` : `${set} ${rest}`);
    digit = until + 1;
  }
  return choices.length === 0 ? undefined : writer.rule("fraction", choices.join(" | "));
}

const shortened = ({ digits, isExclusive }: Edge): Edge => ({ digits: digits.slice(1), isExclusive });

/** Writes digits greater than zero, few enough that the double is greater as well. */
function justAbove(places: number): string | undefined {
  if (places <= 0) return undefined;
  const after = justAbove(places - 1);
  if (after === undefined) return "[1-9]";
  return `([1-9] [0-9]{0,${places - 1}} | "0" ${after})`;
}

/** Most digits of an integer without an upper bound: more than any count, time or key has. */
const OPEN_DIGITS = 20;

/** Largest double, and digits up to which every integer is below it. */
const LARGEST = BigInt(Number.MAX_VALUE).toString();
const MAX_DIGITS = 308;

/**
 * Writes the non-negative integers of a range.
 * @param to undefined: up to {@link OPEN_DIGITS} digits, or one more than the lower bound has
 * @returns a sequence of GBNF
 */
function writeIntegers(writer: GrammarWriter, from: bigint, to: bigint | undefined): string {
  const low = from.toString();
  const open = Math.max(OPEN_DIGITS, low.length + 1);
  const high = to?.toString() ?? (open > MAX_DIGITS ? LARGEST : "9".repeat(open));
  const choices: string[] = [];
  // One choice per length; lengths without bounds are joined.
  const lengthsFree: number[] = [];
  for (let length = low.length; length <= high.length; length += 1) {
    const first = length === low.length ? low : `1${"0".repeat(length - 1)}`;
    const last = length === high.length ? high : "9".repeat(length);
    const isFree = /^10*$/.test(first) && /^9+$/.test(last);
    if (isFree) lengthsFree.push(length);
    else if (length === 1 && first === "0" && last === "9" && high.length > 1) {
      choices.push('"0"');
      lengthsFree.push(1);
    } else choices.push(ofOneLength(writer, first, last));
  }
  const [shortest, longest] = [lengthsFree[0], lengthsFree.at(-1)];
  if (shortest !== undefined && longest !== undefined)
    choices.push(`[1-9]${writeIntegersDigits(shortest - 1, longest - 1)}`);
  return choices.length === 1 ? (choices[0] ?? "") : writer.rule("digits", choices.join(" | "));
}

/** Writes the numbers between two of the same length, which may begin with zeros. */
function ofOneLength(writer: GrammarWriter, low: string, high: string): string {
  const [first, last] = [Number(low[0]), Number(high[0])];
  const rest = low.length - 1;
  if (/^0*$/.test(low) && /^9*$/.test(high)) return writeIntegersDigits(low.length, low.length).trimStart();
  if (rest === 0) return writeIntegersSet(first, last);
  if (first === last) return `"${first}" ${ofOneLength(writer, low.slice(1), high.slice(1))}`;
  const choices: string[] = [];
  const isLowFree = /^0*$/.test(low.slice(1));
  const isHighFree = /^9*$/.test(high.slice(1));
  if (!isLowFree) choices.push(`"${first}" ${ofOneLength(writer, low.slice(1), "9".repeat(rest))}`);
  const [from, to] = [isLowFree ? first : first + 1, isHighFree ? last : last - 1];
  if (from <= to) choices.push(`${writeIntegersSet(from, to)}${writeIntegersDigits(rest, rest)}`);
  if (!isHighFree) choices.push(`"${last}" ${ofOneLength(writer, "0".repeat(rest), high.slice(1))}`);
  return writer.rule("digits", choices.join(" | "));
}

const writeIntegersSet = (from: number, to: number): string =>
  from === to ? `"${from}"` : `[${from}-${to}]`;

function writeIntegersDigits(min: number, max: number): string {
  if (max === 0) return "";
  if (min === 1 && max === 1) return " [0-9]";
  return min === max ? ` [0-9]{${min}}` : ` [0-9]{${min},${max}}`;
}
