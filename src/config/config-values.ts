import { z } from "zod";

const HOUR_MS = 3_600_000;
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: HOUR_MS,
};
/** Longer durations count as infinite, since much later dates cannot be formatted. */
const FOREVER_MS = 100 * 365 * 24 * HOUR_MS;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;
const DURATION = new RegExp(`^[+-]?(?:${PART.source})+$`);
const NUMBER = /^[+-]?\d+(?:\.\d+)?$/;

/**
 * Parses a duration as Go writes it ("1h30m", "1.5h", "300ms"), or a number of seconds, to milliseconds. Infinity for a
 * negative value, which means forever or never; undefined when it is invalid.
 */
export function parseDuration(value: string | number): number | undefined {
  if (typeof value === "number") return value < 0 ? Number.POSITIVE_INFINITY : bounded(value * 1000);
  const text = value.trim();
  if (NUMBER.test(text)) return parseDuration(Number(text));
  if (!DURATION.test(text)) return undefined;
  if (text.startsWith("-")) return Number.POSITIVE_INFINITY;
  let total = 0;
  for (const [, number = "0", unit = ""] of text.matchAll(PART))
    total += Number(number) * (UNIT_MS[unit] ?? 0);
  return bounded(total);
}

function bounded(milliseconds: number): number {
  return milliseconds > FOREVER_MS ? Number.POSITIVE_INFINITY : milliseconds;
}

/** Schema of a duration; its output is in milliseconds. */
export const duration = z.union([z.string(), z.number()]).transform((value, context) => {
  const milliseconds = parseDuration(value);
  if (milliseconds !== undefined) return milliseconds;
  context.addIssue({
    code: "custom",
    message: 'must be a duration such as "5m", "90s", seconds, or -1 for never',
  });
  return z.NEVER;
});

/** Parses a decimal number; undefined for other notations of JavaScript, such as hexadecimal. */
export function parseDecimal(text: string): number | undefined {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}
