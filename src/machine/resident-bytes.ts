const KIB = 1024;

/**
 * Bytes of memory that this process has now. Where the system hides /proc that is not known: then the most that it has
 * had.
 */
export function residentBytes(read = () => process.memoryUsage.rss()): number {
  try {
    return read();
  } catch {
    return process.resourceUsage().maxRSS * KIB;
  }
}
