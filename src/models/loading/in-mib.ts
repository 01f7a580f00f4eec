const MIB = 1024 * 1024;

/** "300 MiB", rounded up. */
export function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}
