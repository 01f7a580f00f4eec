import { setTimeout as delay } from "node:timers/promises";

/** How Windows says that somebody, a virus scanner most often, has one of the files open just now. */
const IN_USE = new Set<unknown>(["EPERM", "EACCES", "EBUSY"]);
/** Scanners let go of a file after some tenths of a second; in all a little over 2 s. */
const WAITS_MS = [10, 30, 100, 300, 700, 1000];

export interface InUseOptions {
  readonly platform?: NodeJS.Platform;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Changes a file's name or takes it away. Where the system refuses while somebody has the file open (Windows), it is
 * tried for a while; elsewhere a refusal is final.
 * @throws what the change throws in the end
 */
export async function waitWhileInUse(
  change: () => Promise<void>,
  { platform = process.platform, sleep = delay }: InUseOptions = {},
): Promise<void> {
  const waits = platform === "win32" ? WAITS_MS : [];
  for (const wait of waits) {
    try {
      return await change();
    } catch (error) {
      if (!(error instanceof Error && "code" in error && IN_USE.has(error.code))) throw error;
      await sleep(wait);
    }
  }
  return await change();
}
