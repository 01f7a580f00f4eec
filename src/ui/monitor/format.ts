const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const KIBI = 1024;

/** Such as "1.25 GiB". */
export function bytes(value: number): string {
  let unit = 0;
  let rest = value;
  while (rest >= KIBI && unit < BYTE_UNITS.length - 1) {
    rest /= KIBI;
    unit += 1;
  }
  return `${SHORT.format(rest)} ${BYTE_UNITS[unit]}`;
}

export function count(value: number): string {
  return NUMBER.format(value);
}

/** With three digits: "0.123", "12.3", "1,230". */
export function short(value: number): string {
  return SHORT.format(value);
}

/** Such as "85 ms", "1.2 s", "3 min", "2 h 5 min", "4 d 2 h". */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${SHORT.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The time of day; of another day with its date. */
export function moment(iso: string): string {
  const date = new Date(iso);
  return (date.toDateString() === new Date().toDateString() ? CLOCK : DAY).format(date);
}
