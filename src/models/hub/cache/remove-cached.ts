import { lstat, realpath, rmdir } from "node:fs/promises";
import path from "node:path";
import { listNames, removeFile } from "../../../files/file-operations.ts";
import { isGguf } from "../../names/model-file-names.ts";
import { isClaimed } from "../../../files/locks.ts";
import {
  contentKey,
  identityOf,
  modelsOf,
  readSnapshots,
  type Snapshot,
  type SnapshotFile,
} from "./snapshots.ts";
import { realPathInside, RepoCache } from "./repo-cache.ts";
import type { CachedModel } from "../hub-types.ts";

/** Time for which an unfinished download may be resumed: a month. */
const PART_RETENTION_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * Removes a model from a repository's cache: its files in its snapshot and in older snapshots without a branch or tag
 * and with the same content, the blobs that no snapshot uses any longer, and empty folders. Does nothing if it is not
 * there.
 */
export async function removeCached(cache: RepoCache, model: CachedModel): Promise<void> {
  // All files are read, because a file that is no model may share a blob with one that is.
  const snapshots = await readSnapshots(cache, () => true);
  const ownSnapshot = snapshots.find((snapshot) => snapshot.commit === model.revision);
  const wanted = ownSnapshot && modelsOf(ownSnapshot).find((files) => files[0]!.path === model.file);
  if (wanted === undefined) return;
  const key = contentKey(wanted);
  const removed: SnapshotFile[] = [];
  for (const snapshot of snapshots) {
    if (snapshot !== ownSnapshot && snapshot.refs.length > 0) continue;
    const models = modelsOf(snapshot);
    const sameModel = models.find((files) => contentKey(files) === key);
    if (sameModel === undefined) continue;
    // The last model takes the remaining GGUF files, its projectors, with it.
    const leaving = models.length === 1 ? snapshot.files.filter((file) => isGguf(file.path)) : sameModel;
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
  const removedPaths = new Set(removed.map((file) => file.absolute));
  const remaining = snapshots
    .flatMap((snapshot) => snapshot.files)
    .filter((file) => !removedPaths.has(file.absolute));
  const used = new Set(remaining.map((file) => file.identity));
  const blobs = new Set<string>();
  const realRoot = await realpath(cache.root);
  for (const file of removed) {
    // Blobs in another repository's folder are not deleted.
    const real = await realPathInside(realRoot, file.absolute);
    if (real !== undefined && !used.has(file.identity)) blobs.add(real);
    await removeFile(file.absolute);
  }
  const unused = new Set(removed.map((file) => file.identity).filter((identity) => !used.has(identity)));
  // A snapshot may have a hard link to a blob; the disk space is only freed when both names are deleted.
  for (const name of await listNames(cache.blobs)) {
    const blob = path.join(cache.blobs, name);
    const info = await lstat(blob, { bigint: true });
    if (unused.has(identityOf(info))) blobs.add(blob);
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
  await removeLeftovers(cache, Number.NEGATIVE_INFINITY);
  for (const folder of [cache.snapshots, cache.refs, cache.blobs, cache.root, cache.locks])
    await removeEmptyTree(folder);
}

/** Removes folders that contain only empty folders; true if this folder was removed. */
async function removeEmptyTree(folder: string): Promise<boolean> {
  for (const name of await listNames(folder)) {
    const inner = path.join(folder, name);
    if ((await lstat(inner)).isDirectory()) await removeEmptyTree(inner);
  }
  return await rmdir(folder).then(
    () => true,
    () => false,
  );
}

/** True if there may be something for {@link removeLeftovers} to remove; needs no lock. */
export async function hasLeftovers(cache: RepoCache): Promise<boolean> {
  const [inRoot, locks, blobs] = await Promise.all([cache.root, cache.locks, cache.blobs].map(listNames));
  return (
    inRoot?.includes(path.basename(cache.temporaryPath)) === true ||
    (locks?.length ?? 0) > 0 ||
    blobs?.some((name) => RepoCache.unfinishedBlob(name) !== undefined) === true
  );
}

/**
 * Removes the leftovers of killed processes in a repository: temporary files, stale locks, and downloads that were not
 * resumed for some time, by default a month. The caller holds the folder's lock.
 */
export async function removeLeftovers(cache: RepoCache, retentionMs = PART_RETENTION_MS): Promise<void> {
  await removeFile(cache.temporaryPath);
  for (const name of await listNames(cache.locks)) {
    const file = path.join(cache.locks, name);
    if (RepoCache.isLock(name) && !(await isClaimed(file))) await removeFile(file);
  }
  for (const name of await listNames(cache.blobs)) {
    const hex = RepoCache.unfinishedBlob(name);
    const part = path.join(cache.blobs, name);
    const stats = hex === undefined ? undefined : await lstat(part).catch(() => undefined);
    if (hex === undefined || !stats || Date.now() - stats.mtimeMs < retentionMs) continue;
    if (!(await isClaimed(cache.lock(hex)))) await removeFile(part);
  }
  for (const folder of [cache.locks, path.dirname(cache.locks)]) await rmdir(folder).catch(() => {}); // in use, or does not exist
}
