import type { GrammarWriter } from "../gbnf/grammar-writer.ts";
import { digitsAt, floorOf } from "./decimal.ts";
import type { Limit } from "./number-bounds.ts";
import { writeIntegers } from "./write-integers.ts";

/** Most digits after the point, where a bound does not need more. */
const MAX_FRACTION = 15;
/** Decimals of so many digits are different doubles whenever they are different. */
const EXACT_DIGITS = 15;

/** A range of numbers that are not negative. */
export interface Side {
  readonly low: Limit;
  readonly high?: Limit | undefined;
}

/** What of a fraction is still to be compared: the digits of a bound, or undefined where it is passed. */
interface Edge {
  readonly digits: string;
  readonly isExclusive: boolean;
}

/**
 * Writes the decimals of a range, without sign.
 * @param fraction most digits after the point; undefined: as many as fit
 * @returns a sequence of GBNF; "" when there is none
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

/** The point and the digits after it, or nothing where that is enough; undefined when there is no such fraction. */
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

/** Whether a number may end where so much of a bound is left. */
const endsLow = (low: Edge | undefined): boolean => !low || (low.digits === "" && !low.isExclusive);
const endsHigh = (high: Edge | undefined): boolean => !high || high.digits !== "" || !high.isExclusive;

/** One digit or more, between what is left of two bounds. */
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
    // The digits between those of the bounds go on alike.
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

/** More than nothing, with so few digits that the double is more too. */
function justAbove(places: number): string | undefined {
  if (places <= 0) return undefined;
  const after = justAbove(places - 1);
  if (after === undefined) return "[1-9]";
  return `([1-9] [0-9]{0,${places - 1}} | "0" ${after})`;
}
