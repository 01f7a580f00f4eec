const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const KIBI = 1024;

/** Formats bytes in binary units, such as "1.25 GiB". */
export function formatBinaryBytes(value: number): string {
  let unit = 0;
  let scaled = value;
  while (scaled >= KIBI && unit < BYTE_UNITS.length - 1) {
    scaled /= KIBI;
    unit += 1;
  }
  return `${SHORT.format(scaled)} ${BYTE_UNITS[unit]}`;
}

export function formatCount(value: number): string {
  return NUMBER.format(value);
}

/** Formats a number with three significant digits: "0.123", "12.3", "1,230". */
export function formatNumber(value: number): string {
  return SHORT.format(value);
}

/** Formats milliseconds, such as "85 ms", "1.2 s", "3 min", "2 h 5 min" or "4 d 2 h". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${SHORT.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Formats the time of day, with the date unless it is today. */
export function formatTime(iso: string): string {
  const date = new Date(iso);
  return (date.toDateString() === new Date().toDateString() ? CLOCK : DAY).format(date);
}
