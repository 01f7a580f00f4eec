/** Keywords of JSON Schema that restrict numbers. */
export interface NumberBounds {
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly exclusiveMaximum?: number | undefined;
  readonly multipleOf?: readonly number[] | undefined;
  readonly isInteger: boolean;
}

/** End of a range. */
export interface Limit {
  readonly at: Decimal;
  readonly isExclusive: boolean;
}

/** Range of numbers; a missing end is open. */
export interface NumberRange {
  readonly low?: Limit | undefined;
  readonly high?: Limit | undefined;
  /** Divisors of all numbers; not negative. */
  readonly steps: readonly Decimal[];
}

/** Limit above which a number greater than an exclusive bound may be rounded to the bound. */
const LAST_EXACT = 1e15;

/** Converts keywords to a range; undefined if it is empty. */
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

/** Returns the next larger double: its bits are those of the next integer, away from zero for positive numbers. */
function nextAbove(value: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (value > 0 ? 1n : -1n));
  return Math.min(Number.MAX_VALUE, view.getFloat64(0));
}

/** Exact decimal number: digits · 10^-scale. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** Converts a double to its shortest decimal: 0.1 is 1 · 10^-1. */
function toDecimal(value: number): Decimal {
  const found = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value));
  if (!found) throw new RangeError(`${value} is not a finite number`);
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = found;
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(sign + whole + fraction);
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale };
}

/** Digits of a number at a larger scale. */
export const digitsAt = ({ digits, scale }: Decimal, atScale: number): bigint =>
  digits * 10n ** BigInt(atScale - scale);

/** Largest integer that is not greater. */
export function floorOf({ digits, scale }: Decimal): bigint {
  const unit = 10n ** BigInt(scale);
  const quotient = digits / unit;
  return digits < 0n && quotient * unit !== digits ? quotient - 1n : quotient;
}

export const negated = ({ digits, scale }: Decimal): Decimal => ({ digits: -digits, scale });

/** True if `value` is a multiple of `of`, in exact arithmetic. */
export function isMultiple(value: Decimal, of: Decimal): boolean {
  if (of.digits === 0n) return false;
  const scale = Math.max(value.scale, of.scale);
  return digitsAt(value, scale) % digitsAt(of, scale) === 0n;
}

/** The same for doubles, by their shortest decimals: 4.02 is a multiple of 0.01. */
export function isMultipleOf(value: number, divisor: number): boolean {
  return isMultiple(toDecimal(value), toDecimal(divisor));
}

/** Compares numbers: negative, 0 or positive. */
function compared(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale);
  const difference = digitsAt(a, scale) - digitsAt(b, scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
