import { statfs } from "node:fs/promises";
import { ServiceError } from "../../../errors/service-error.ts";

/** Left free for everything else on the disk: logs, the system, a browser's cache. */
const RESERVE_BYTES = 256 * 1024 * 1024;

/** Tells how many bytes an unprivileged process may still write below a folder; undefined when nobody knows. */
export type FreeSpace = (folder: string) => Promise<number | undefined>;

export const freeSpace: FreeSpace = async (folder) => {
  try {
    const { bavail, bsize } = await statfs(folder);
    // Some network file systems report nothing at all.
    return bsize === 0 ? undefined : bavail * bsize;
  } catch {
    return undefined;
  }
};

/** @throws ServiceError insufficient_disk */
export async function requireFreeSpace(
  folder: string,
  neededBytes: number,
  measure: FreeSpace,
): Promise<void> {
  if (neededBytes === 0) return;
  const free = await measure(folder);
  if (free === undefined || free >= neededBytes + RESERVE_BYTES) return;
  throw new ServiceError(
    "insufficient_disk",
    `The download needs ${gigabytes(neededBytes)} more in ${folder}, where ${gigabytes(free)} are free; ${gigabytes(RESERVE_BYTES)} must stay free.`,
  );
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
