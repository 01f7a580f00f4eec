import type { BatchRecords, FileContents } from "./batch-store.ts";

/** Removes files whose time is over, but not from batches that are not over, and batches that are too old. */
export async function removeExpired(
  { store, folder }: { readonly store: BatchRecords; readonly folder: Pick<FileContents, "remove"> },
  now: number,
  retentionMs: number,
): Promise<void> {
  const inUse = new Set((await store.unfinished()).map(({ inputFile }) => inputFile));
  for (const id of await store.expiredFiles(now)) {
    if (inUse.has(id)) continue;
    await store.removeFile(id);
    await folder.remove(id);
  }
  if (!Number.isFinite(retentionMs)) return;
  for (const id of await store.endedBefore(now - retentionMs)) await store.removeBatch(id);
}
