import { mkdir, stat, writeFile, statfs } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../../../errors/service-error.ts";
import { removeFile } from "../../../files/remove-file.ts";
import type { FolderLock } from "../../../files/folder-lock.ts";
import { replaceFile } from "../../../files/replace-file.ts";
import { realPathInside, type RepoCache } from "../cache/repo-cache.ts";
import { downloadBlob } from "./download-blob.ts";
import type { HubFetch } from "../remote/hub-fetch.ts";
import { placeInSnapshot } from "../cache/place-in-snapshot.ts";
import type { PullMeter } from "./pull-meter.ts";
import type { RepoFile, RepoListing } from "../hub-store.ts";
import type { Sleep } from "../remote/retry.ts";
import type { SharedTasks } from "./shared-tasks.ts";

/** What downloads of one store have in common. */
export interface PullTools {
  readonly hub: HubFetch;
  readonly hubUrl: string;
  readonly sleep: Sleep;
  readonly measureSpace: FreeSpace;
  readonly stallTimeoutMs: number | undefined;
  readonly downloads: SharedTasks;
  /** Of the cache folder; held while blobs become or cease to be used. */
  readonly lock: FolderLock;
}

/** Brings chosen files of one commit into a repository's cache. */
export class SnapshotPull {
  readonly #tools: PullTools;
  readonly #realCacheDir: string;
  readonly #cache: RepoCache;
  readonly #listing: RepoListing;

  /** @param realCacheDir - the cache folder with its own links resolved; it exists */
  constructor(tools: PullTools, realCacheDir: string, cache: RepoCache, listing: RepoListing) {
    this.#tools = tools;
    this.#realCacheDir = realCacheDir;
    this.#cache = cache;
    this.#listing = listing;
  }

  /** @throws ServiceError insufficient_disk */
  async checkSpace(files: readonly RepoFile[]): Promise<void> {
    let needed = 0;
    for (const file of files) {
      if ((await this.#isPlaced(file)) || (await this.#hasBlob(file))) continue;
      needed += file.size - Math.min(file.size, await this.#partSize(file));
    }
    await requireFreeSpace(this.#realCacheDir, needed, this.#tools.measureSpace);
  }

  /** Downloads the files that are missing, one after the other; each is in the snapshot when it is whole. */
  async fetch(files: readonly RepoFile[], meter: PullMeter, signal: AbortSignal): Promise<void> {
    for (const file of files) {
      signal.throwIfAborted();
      while (!(await this.#tools.lock.run(() => this.#place(file))))
        await this.#download(file, meter, signal);
      meter.update(file.path, file.size);
    }
  }

  /** Remembers which commit a branch or tag is, so that it can be found without the hub. */
  async writeRef(revision: string): Promise<void> {
    const { commit } = this.#listing;
    if (revision === commit) return;
    const target = path.join(this.#cache.refs, ...revision.split("/"));
    const { next } = this.#cache;
    await this.#tools.lock.run(async () => {
      await this.#makeFolder(path.dirname(target));
      await removeFile(next);
      await writeFile(next, commit, { flag: "wx" });
      await replaceFile(next, target);
    });
  }

  async #download(file: RepoFile, meter: PullMeter, signal: AbortSignal): Promise<void> {
    const { hub, hubUrl, sleep, stallTimeoutMs, downloads, lock } = this.#tools;
    const { hex } = file.digest;
    const { repo, commit } = this.#listing;
    await this.#makeFolder(this.#cache.blobs);
    await this.#makeFolder(this.#cache.locks);
    await downloads.run(
      this.#cache.blob(hex),
      ({ onBytes, onRetry }, shared) =>
        downloadBlob(
          {
            remote: { hub, hubUrl, repo, commit, file },
            blobPath: this.#cache.blob(hex),
            partPath: this.#cache.part(hex),
            folder: lock,
            lockPath: this.#cache.lock(hex),
            sleep,
            stallTimeoutMs,
            onBytes,
            onRetry,
            isPresent: () => this.#hasBlob(file),
            partSize: () => this.#partSize(file),
          },
          shared,
        ),
      {
        onBytes: (bytes) => meter.update(file.path, bytes),
        onRetry: (retry) => meter.retry(retry),
      },
      signal,
    );
  }

  /** Makes the file visible in the snapshot; false when its blob is not there. */
  async #place(file: RepoFile): Promise<boolean> {
    if (await this.#isPlaced(file)) return true;
    if (!(await this.#hasBlob(file))) return false;
    const target = this.#target(file);
    await this.#makeFolder(path.dirname(target));
    await placeInSnapshot(this.#cache.blob(file.digest.hex), target, this.#cache.next);
    return true;
  }

  #target(file: RepoFile): string {
    return this.#cache.snapshotFile(this.#listing.commit, file.path);
  }

  #isPlaced(file: RepoFile): Promise<boolean> {
    return this.#isWhole(this.#target(file), file.size);
  }

  #hasBlob(file: RepoFile): Promise<boolean> {
    return this.#isWhole(this.#cache.blob(file.digest.hex), file.size);
  }

  async #isWhole(target: string, size: number): Promise<boolean> {
    const real = await realPathInside(this.#realCacheDir, target);
    if (real === undefined) return false;
    const info = await stat(real);
    return info.isFile() && info.size === size;
  }

  async #partSize(file: RepoFile): Promise<number> {
    try {
      return (await stat(this.#cache.part(file.digest.hex))).size;
    } catch {
      return 0;
    }
  }

  /** Makes a folder below the cache folder, step by step: none is made behind a link that leads out of it. */
  async #makeFolder(folder: string): Promise<void> {
    let current = this.#realCacheDir;
    for (const name of path.relative(current, folder).split(path.sep)) {
      current = path.join(current, name);
      await mkdir(current, { recursive: true });
      if ((await realPathInside(this.#realCacheDir, current)) === undefined)
        throw new ServiceError(
          "path_not_allowed",
          `${current} is a link that leads out of the cache folder.`,
        );
    }
  }
}

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
