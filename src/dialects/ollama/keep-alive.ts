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
/** Longer means forever: much later dates cannot be formatted. */
const FOREVER_MS = 100 * 365 * 24 * HOUR_MS;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;
const DURATION = new RegExp(`^[+-]?(?:${PART.source})+$`);
const NUMBER = /^[+-]?\d+(?:\.\d+)?$/;

/**
 * Parses a Go duration ("1h30m", "1.5h", "300ms") or a number of seconds to milliseconds. Infinity for a negative
 * value, which means forever; undefined when it is invalid.
 */
export function parseKeepAlive(value: string | number): number | undefined {
  if (typeof value === "number") return value < 0 ? Number.POSITIVE_INFINITY : bounded(value * 1000);
  const text = value.trim();
  if (NUMBER.test(text)) return parseKeepAlive(Number(text));
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

/** In milliseconds. */
export const keepAliveField = z
  .union([z.string(), z.number()])
  .transform((value, context) => {
    const milliseconds = parseKeepAlive(value);
    if (milliseconds !== undefined) return milliseconds;
    context.addIssue({ code: "custom", message: 'must be a duration such as "5m", or a number of seconds' });
    return z.NEVER;
  })
  .nullish()
  .describe(
    'How long the model stays in memory after this request: "5m", "1h30m", seconds, 0 to unload it, negative for forever. Default: as it was loaded; when this request loads it, models.keep_alive (5 minutes).',
  );
