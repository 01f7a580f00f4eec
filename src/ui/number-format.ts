/** Formats of numbers for the user. */

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
const COUNT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat("en");
const DATE = new Intl.DateTimeFormat("en", { dateStyle: "medium" });

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** Formats bytes in decimal units, as hubs and disk makers do: "4.7 GB". */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  return new Intl.NumberFormat("en", {
    style: "unit",
    unit: UNITS[power] ?? "byte",
    unitDisplay: power === 0 ? "long" : "short",
    maximumFractionDigits: power < 2 ? 0 : 1,
  }).format(bytes / 1000 ** power);
}

/** Formats a number in short form: "1.2B", "270M". */
export function formatCompact(count: number): string {
  return COUNT.format(count);
}

/** Formats an integer with separators: "131,072". */
export function formatInteger(count: number): string {
  return WHOLE.format(count);
}

/** Formats seconds, rounded up: "40 s", "3 min", "2 h 5 min". */
export function formatRemainingTime(seconds: number): string {
  if (seconds < MINUTE) return `${Math.max(1, Math.ceil(seconds))} s`;
  if (seconds < HOUR) return `${Math.ceil(seconds / MINUTE)} min`;
  const minutes = Math.ceil(seconds / MINUTE);
  return `${Math.floor(minutes / MINUTE)} h ${minutes % MINUTE} min`;
}

/** Formats an ISO 8601 time as a date: "Jan 2, 2026". */
export function formatDate(time: string): string {
  return DATE.format(new Date(time));
}
