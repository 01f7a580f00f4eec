import { lstat, realpath, rmdir } from "node:fs/promises";
import path from "node:path";
import { listNames, removeFile } from "../../../files/file-operations.ts";
import { isOwned } from "../../../files/locks.ts";
import {
  contentKey,
  modelsOf,
  isGguf,
  readSnapshots,
  type Snapshot,
  type SnapshotFile,
} from "./snapshots.ts";
import { realPathInside, RepoCache } from "./repo-cache.ts";
import type { CachedModel } from "../hub-store.ts";

/** How long an unfinished download may be resumed: a month. */
const PART_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * Removes a model from a repository's cache: its files in its snapshot and in unnamed older ones with the same
 * content, the blobs that no snapshot uses any longer, and what is left empty. Does nothing when it is gone.
 */
export async function removeCached(cache: RepoCache, model: CachedModel): Promise<void> {
  // Every file counts: one that is not a model may share a blob with one that is.
  const snapshots = await readSnapshots(cache, () => true);
  const home = snapshots.find((snapshot) => snapshot.commit === model.revision);
  const wanted = home && modelsOf(home).find((files) => files[0]!.path === model.file);
  if (wanted === undefined) return;
  const key = contentKey(wanted);
  const removed: SnapshotFile[] = [];
  for (const snapshot of snapshots) {
    if (snapshot !== home && snapshot.refs.length > 0) continue;
    const models = modelsOf(snapshot);
    const hit = models.find((files) => contentKey(files) === key);
    if (hit === undefined) continue;
    // After the last model, only its projectors are left.
    const leaving = models.length === 1 ? snapshot.files.filter((file) => isGguf(file.path)) : hit;
    removed.push(...leaving);
  }
  await removeFiles(cache, snapshots, removed);
  await removeEmpty(cache, snapshots);
}

async function removeFiles(
  cache: RepoCache,
  snapshots: readonly Snapshot[],
  removed: readonly SnapshotFile[],
): Promise<void> {
  const gone = new Set(removed.map((file) => file.absolute));
  const kept = snapshots.flatMap((snapshot) => snapshot.files).filter((file) => !gone.has(file.absolute));
  const used = new Set(kept.map((file) => file.identity));
  const blobs = new Set<string>();
  const realRoot = await realpath(cache.root);
  for (const file of removed) {
    // Files in another repository's folder are not deleted.
    const real = await realPathInside(realRoot, file.absolute);
    if (real !== undefined && !used.has(file.identity)) blobs.add(real);
    await removeFile(file.absolute);
  }
  const unused = new Set(removed.map((file) => file.identity).filter((identity) => !used.has(identity)));
  // A blob may have a second name in the snapshot instead of a link to it; both must go for its bytes to go.
  for (const name of await listNames(cache.blobs)) {
    const blob = path.join(cache.blobs, name);
    const info = await lstat(blob, { bigint: true });
    if (unused.has(`${info.dev}:${info.ino}`)) blobs.add(blob);
  }
  for (const blob of blobs) await removeFile(blob);
}

async function removeEmpty(cache: RepoCache, snapshots: readonly Snapshot[]): Promise<void> {
  for (const snapshot of snapshots) {
    const folder = path.join(cache.snapshots, snapshot.commit);
    if (!(await removeEmptyTree(folder))) continue;
    for (const ref of snapshot.refs) await removeFile(path.join(cache.refs, ...ref.split("/")));
  }
  if ((await listNames(cache.snapshots)).length > 0) return;
  await removeParts(cache);
  await removeLeftovers(cache);
  for (const folder of [cache.snapshots, cache.refs, cache.blobs, cache.root, cache.locks])
    await removeEmptyTree(folder);
}

/** Removes unfinished downloads of a repository that is being removed, unless they are in progress. */
async function removeParts(cache: RepoCache): Promise<void> {
  for (const name of await listNames(cache.blobs)) {
    const hex = RepoCache.unfinishedBlob(name);
    if (hex !== undefined && !(await isOwned(cache.lock(hex))))
      await removeFile(path.join(cache.blobs, name));
  }
}

/** Removes folders that contain only empty folders; true if this one is gone. */
async function removeEmptyTree(folder: string): Promise<boolean> {
  for (const name of await listNames(folder)) {
    const inner = path.join(folder, name);
    if ((await lstat(inner)).isDirectory()) await removeEmptyTree(inner);
  }
  try {
    await rmdir(folder);
    return true;
  } catch {
    return false;
  }
}

/** Whether there is anything that {@link removeLeftovers} might remove; needs no lock. */
export async function hasLeftovers(cache: RepoCache): Promise<boolean> {
  const [inRoot, locks, blobs] = await Promise.all([cache.root, cache.locks, cache.blobs].map(listNames));
  return (
    inRoot?.includes(path.basename(cache.next)) === true ||
    (locks?.length ?? 0) > 0 ||
    blobs?.some((name) => RepoCache.unfinishedBlob(name) !== undefined) === true
  );
}

/**
 * Removes what killed processes have left in a repository: temporary names, stale locks, and downloads that were not
 * resumed for a month. The caller holds the folder's lock.
 */
export async function removeLeftovers(cache: RepoCache): Promise<void> {
  await removeFile(cache.next);
  for (const name of await listNames(cache.locks)) {
    const file = path.join(cache.locks, name);
    if (RepoCache.isLock(name) && !(await isOwned(file))) await removeFile(file);
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
