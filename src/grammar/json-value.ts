/**
 * Serializes a JSON value canonically: equal values have equal texts, whatever the order of properties or form of
 * numbers.
 */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined);
    entries.sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${entries.map(([name, field]) => `${JSON.stringify(name)}:${canonicalText(field)}`).join(",")}}`;
  }
  return JSON.stringify(value === 0 ? 0 : value) ?? "null";
}

/** True if `value` is a multiple of `divisor`, in exact decimal arithmetic. */
export function isMultipleOf(value: number, divisor: number): boolean {
  const one = decimalOf(value);
  const other = decimalOf(divisor);
  const exponent = Math.min(one.exponent, other.exponent);
  const scaled = (decimal: Decimal): bigint => decimal.digits * 10n ** BigInt(decimal.exponent - exponent);
  return scaled(one) % scaled(other) === 0n;
}

/** Decimal number: digits · 10^exponent. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function decimalOf(value: number): Decimal {
  const [mantissa = "0", power = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}

/** Length as JSON Schema counts it: in code points. */
export function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** JSON type of a value; "number" for integers as well. */
export function typeOf(value: unknown): "null" | "boolean" | "number" | "string" | "array" | "object" {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  const type = typeof value;
  return type === "boolean" || type === "number" || type === "string" ? type : "object";
}
