import { setTimeout as delay } from "node:timers/promises";

/** Windows' errors for a file that another program, usually a virus scanner, has open. */
const IN_USE = new Set<unknown>(["EPERM", "EACCES", "EBUSY"]);
/** Scanners release a file after some tenths of a second; in total a little over 2 s. */
const WAITS_MS = [10, 30, 100, 300, 700, 1000];

interface InUseOptions {
  readonly platform?: NodeJS.Platform;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Renames or removes a file. On Windows, retries for a while if another program has the file open.
 * @throws the change's last error
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
