import { lstat, rmdir } from "node:fs/promises";
import path from "node:path";
import { removeFile } from "../../../files/remove-file.ts";
import { isOwned } from "../../../files/folder-lock.ts";
import { listNames } from "../../../files/list-names.ts";
import { RepoCache } from "./repo-cache.ts";

/** Somebody may come back for an unfinished download for so long: a month. */
const PART_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

/** Lock files of earlier versions, whose owners rewrite them every two seconds. */
const EARLIER_LOCK = /^[0-9a-f]+\.owner(?:\.[0-9a-f-]+)?$/;
const EARLIER_LOCK_KEPT_MS = 60_000;

/** True when there is anything that {@link removeLeftovers} might remove; needs no lock. */
export async function hasLeftovers(cache: RepoCache): Promise<boolean> {
  const [inRoot, locks, blobs] = await Promise.all([cache.root, cache.locks, cache.blobs].map(listNames));
  return (
    inRoot?.includes(path.basename(cache.next)) === true ||
    (locks?.length ?? 0) > 0 ||
    blobs?.some((name) => RepoCache.unfinishedBlob(name) !== undefined) === true
  );
}

/**
 * Removes what killed processes have left of a repository: half-made names, locks of nobody, and downloads that were
 * not gone on with for a month. The caller holds the folder's lock.
 */
export async function removeLeftovers(cache: RepoCache): Promise<void> {
  await removeFile(cache.next);
  for (const name of await listNames(cache.locks)) {
    const file = path.join(cache.locks, name);
    const isLeft =
      RepoCache.lockedBlob(name) === undefined
        ? EARLIER_LOCK.test(name) && (await isOlderThan(file, EARLIER_LOCK_KEPT_MS))
        : !(await isOwned(file));
    if (isLeft) await removeFile(file);
  }
  for (const name of await listNames(cache.blobs)) {
    const hex = RepoCache.unfinishedBlob(name);
    const part = path.join(cache.blobs, name);
    if (hex === undefined || !(await isOlderThan(part, PART_KEPT_MS))) continue;
    if (!(await isOwned(cache.lock(hex)))) await removeFile(part);
  }
  for (const folder of [cache.locks, path.dirname(cache.locks)]) {
    try {
      await rmdir(folder);
    } catch {
      // It is in use, or there is none.
    }
  }
}

async function isOlderThan(file: string, ms: number): Promise<boolean> {
  try {
    return Date.now() - (await lstat(file)).mtimeMs > ms;
  } catch {
    return false;
  }
}
