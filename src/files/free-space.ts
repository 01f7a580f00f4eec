import { statfs } from "node:fs/promises";

/** Disk space left free for other uses: logs, the system, a browser's cache. */
export const RESERVE_BYTES = 256 * 1024 * 1024;

/** Bytes that an unprivileged process may still write in a folder; undefined if unknown. */
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

/** "1.25 GB", for sentences about what does not fit. */
export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
