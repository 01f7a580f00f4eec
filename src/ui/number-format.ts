/** Numbers as people read them. */

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
const COUNT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat("en");
const DATE = new Intl.DateTimeFormat("en", { dateStyle: "medium" });

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** "4.7 GB": in decimal units, as hubs and disks count. */
export function inBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  return new Intl.NumberFormat("en", {
    style: "unit",
    unit: UNITS[power] ?? "byte",
    unitDisplay: power === 0 ? "long" : "short",
    maximumFractionDigits: power < 2 ? 0 : 1,
  }).format(bytes / 1000 ** power);
}

/** "1.2B", "270M". */
export function inShort(count: number): string {
  return COUNT.format(count);
}

/** "131,072". */
export function inFull(count: number): string {
  return WHOLE.format(count);
}

/** "40 s", "3 min", "2 h 5 min". */
export function inTime(seconds: number): string {
  if (seconds < MINUTE) return `${Math.max(1, Math.ceil(seconds))} s`;
  if (seconds < HOUR) return `${Math.ceil(seconds / MINUTE)} min`;
  const minutes = Math.ceil(seconds / MINUTE);
  return `${Math.floor(minutes / MINUTE)} h ${minutes % MINUTE} min`;
}

/** "Jan 2, 2026", of a time in ISO 8601. */
export function inDays(time: string): string {
  return DATE.format(new Date(time));
}
