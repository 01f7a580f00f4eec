/** An exact decimal number: digits · 10^-scale. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** The shortest decimal that a double stands for: 0.1 is 1 · 10^-1. */
export function toDecimal(value: number): Decimal {
  const found = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value));
  if (!found) throw new RangeError(`${value} is not a finite number`);
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = found;
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(sign + whole + fraction);
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale };
}

/** The same number with at least this scale. */
export const digitsAt = ({ digits, scale }: Decimal, atScale: number): bigint =>
  digits * 10n ** BigInt(atScale - scale);

/** Greatest integer that is not above. */
export function floorOf({ digits, scale }: Decimal): bigint {
  const unit = 10n ** BigInt(scale);
  const quotient = digits / unit;
  return digits < 0n && quotient * unit !== digits ? quotient - 1n : quotient;
}

export const negated = ({ digits, scale }: Decimal): Decimal => ({ digits: -digits, scale });

/** True when the one is a multiple of the other, in exact arithmetic. */
export function isMultiple(value: Decimal, of: Decimal): boolean {
  if (of.digits === 0n) return false;
  const scale = Math.max(value.scale, of.scale);
  return digitsAt(value, scale) % digitsAt(of, scale) === 0n;
}

/** Below 0, 0 or above 0, as a number is less than, equal to or greater than another. */
export function compared(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale);
  const difference = digitsAt(a, scale) - digitsAt(b, scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
