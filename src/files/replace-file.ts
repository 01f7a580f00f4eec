import { rename as fsRename } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** How Windows says that somebody, a virus scanner most often, has one of the files open just now. */
const IN_USE = new Set<unknown>(["EPERM", "EACCES", "EBUSY"]);
/** Scanners let go of a file after some tenths of a second; in all a little over 2 s. */
const WAITS_MS = [10, 30, 100, 300, 700, 1000];

export interface ReplaceFileOptions {
  readonly platform?: NodeJS.Platform;
  readonly rename?: typeof fsRename;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Gives a file its final name, in place of what has that name. Where the system refuses while somebody has one of
 * them open (Windows), it is tried for a while; elsewhere a refusal is final.
 */
export async function replaceFile(
  from: string,
  to: string,
  { platform = process.platform, rename = fsRename, sleep = delay }: ReplaceFileOptions = {},
): Promise<void> {
  const waits = platform === "win32" ? WAITS_MS : [];
  for (const wait of waits) {
    try {
      return await rename(from, to);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && IN_USE.has(error.code))) throw error;
      await sleep(wait);
    }
  }
  return await rename(from, to);
}
