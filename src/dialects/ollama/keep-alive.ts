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
/** A hundred years are for good; dates much further ahead cannot be written. */
const FOR_GOOD_MS = 100 * 365 * 24 * HOUR_MS;
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)/g;
const DURATION = new RegExp(`^[+-]?(?:${PART.source})+$`);
const NUMBER = /^[+-]?\d+(?:\.\d+)?$/;

/**
 * Milliseconds of a duration in Go's notation ("1h30m", "1.5h", "300ms") or of a number of seconds; Infinity for
 * a negative one, which means for good. Undefined for anything else.
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
  return milliseconds > FOR_GOOD_MS ? Number.POSITIVE_INFINITY : milliseconds;
}

/** Gives milliseconds; absent: as the model was loaded, or the configured keep_alive. */
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
    'How long the model stays in memory after this request: "5m", "1h30m", seconds, 0 for not at all, negative for good. Default: as it was loaded; 5 minutes (the configured models.keep_alive) when this request loads it.',
  );
