import { compared, type Decimal, isMultiple, toDecimal } from "./decimal.ts";

/** What a number must be, as the keywords of JSON Schema say it. */
export interface NumberBounds {
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly exclusiveMaximum?: number | undefined;
  readonly multipleOf?: readonly number[] | undefined;
  readonly isInteger: boolean;
}

/** One end of a range. */
export interface Limit {
  readonly at: Decimal;
  readonly isExclusive: boolean;
}

/** The keywords as one range; a missing end is open. */
export interface NumberRange {
  readonly low?: Limit | undefined;
  readonly high?: Limit | undefined;
  /** Must be multiples of all of these, which are not negative. */
  readonly steps: readonly Decimal[];
}

/** From here on, not every integer is a double: what is above a bound may be rounded to it. */
const LAST_EXACT = 1e15;

/**
 * True when a number satisfies the bounds. Multiples are those of the decimal numbers that the doubles stand for, so that
 * 4.02 is a multiple of 0.01.
 */
export function numberSatisfies(value: number, bounds: NumberBounds): boolean {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum, exclusiveMaximum } = bounds;
  if (!Number.isFinite(value) || value < minimum || value > maximum) return false;
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return false;
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return false;
  if (bounds.isInteger && !Number.isInteger(value)) return false;
  const decimal = toDecimal(value);
  return (bounds.multipleOf ?? []).every((step) => isMultiple(decimal, toDecimal(step)));
}

/** The range of the keywords; undefined when no number is in it. */
export function rangeOf(bounds: NumberBounds): NumberRange | undefined {
  const low = [...lowLimit(bounds.minimum, false), ...lowLimit(bounds.exclusiveMinimum, true)].reduce<
    Limit | undefined
  >((a, b) => (a && isTighter(a, b, 1) ? a : b), undefined);
  const high = [
    ...lowLimit(negative(bounds.maximum), false),
    ...lowLimit(negative(bounds.exclusiveMaximum), true),
  ]
    .map(mirrored)
    .reduce<Limit | undefined>((a, b) => (a && isTighter(a, b, -1) ? a : b), undefined);
  if (bounds.minimum === Infinity || bounds.maximum === -Infinity) return undefined;
  if (low && high) {
    const order = compared(low.at, high.at);
    if (order > 0 || (order === 0 && (low.isExclusive || high.isExclusive))) return undefined;
  }
  const steps = (bounds.multipleOf ?? []).map(toDecimal);
  return { low, high, steps: bounds.isInteger ? [...steps, { digits: 1n, scale: 0 }] : steps };
}

function lowLimit(value: number | undefined, isExclusive: boolean): Limit[] {
  if (value === undefined || value === -Infinity) return [];
  if (value === Infinity) return [{ at: toDecimal(Number.MAX_VALUE), isExclusive: true }];
  if (isExclusive && Math.abs(value) >= LAST_EXACT)
    return [{ at: toDecimal(nextAbove(value)), isExclusive: false }];
  return [{ at: toDecimal(value), isExclusive }];
}

const isTighter = (a: Limit, b: Limit, sign: number): boolean => {
  const order = compared(a.at, b.at) * sign;
  return order > 0 || (order === 0 && a.isExclusive);
};

const negative = (value: number | undefined): number | undefined =>
  value === undefined ? undefined : -value;

const mirrored = ({ at, isExclusive }: Limit): Limit => ({
  at: { digits: -at.digits, scale: at.scale },
  isExclusive,
});

/** The next double: its bits are those of the next integer, away from zero for a positive number. */
function nextAbove(value: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (value > 0 ? 1n : -1n));
  return Math.min(Number.MAX_VALUE, view.getFloat64(0));
}
