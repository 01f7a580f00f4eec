/** Formats of quantities and times for people, on the command line, in the page and in messages. */

export const KIB = 1024;
export const MIB = 1024 * KIB;

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Formats bytes in decimal units, as hubs and disk makers do: "4.7 GB". */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit > 0 && value < 99.95 ? value.toFixed(1) : Math.round(value)} ${BYTE_UNITS[unit]}`;
}

/** Formats bytes of disk space: "1.25 GB". */
export function formatGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}

/** Formats bytes of memory, by default rounded up: "512 MiB". */
export function formatMebibytes(bytes: number, round: (value: number) => number = Math.ceil): string {
  return `${round(bytes / MIB)} MiB`;
}

/** Formats a large count in short form: "494M", "1.5B". */
export function formatCount(count: number): string {
  for (const [size, letter] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "K"],
  ] as const) {
    // 999.6M would round to 1000M: it is 1.0B.
    if (count >= size * 0.9995) {
      const value = count / size;
      return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${letter}`;
    }
  }
  return String(count);
}

/** Formats an integer with separators: "131,072". */
export function formatInteger(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 0 });
}

/** Formats a number with three significant digits: "0.123", "12.3", "1,230". */
export function formatNumber(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** Formats a duration in at most two units: "850 ms", "12.3 s", "4m 05s", "2h 10m", "3d 4h". */
export function formatDuration(millis: number): string {
  if (millis < 1000) return `${Math.round(millis)} ms`;
  const seconds = millis / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const total = Math.round(seconds);
  const [days, hours, minutes] = [
    Math.floor(total / 86_400),
    Math.floor(total / 3600),
    Math.floor(total / 60),
  ];
  if (days > 0) return `${days}d ${hours % 24}h`;
  if (hours > 0) return `${hours}h ${String(minutes % 60).padStart(2, "0")}m`;
  return `${minutes}m ${String(total % 60).padStart(2, "0")}s`;
}

/** Formats an ISO 8601 time as a date: "Jan 2, 2026". */
export function formatDate(time: string): string {
  return new Date(time).toLocaleDateString("en", { dateStyle: "medium" });
}

/** Formats an ISO 8601 time as the time of day, with the date unless it is today. */
export function formatTime(time: string): string {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString("en-GB", { timeStyle: "medium", ...(!isToday && { dateStyle: "medium" }) });
}

/** Formats a log-probability: "12.3 %". */
export function formatProbability(logprob: number): string {
  return `${(Math.exp(logprob) * 100).toFixed(1)} %`;
}
