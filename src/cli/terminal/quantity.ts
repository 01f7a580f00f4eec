const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Bytes in decimal units, as hubs and disks give them: "4.7 GB". */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit > 0 && value < 99.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** A number of parameters the way models are named: "494M", "1.5B". */
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

/** A length of time in at most two units: "850 ms", "12.3 s", "4m 05s", "2h 10m", "3d 4h". */
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
