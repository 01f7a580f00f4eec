import { writeFile } from "node:fs/promises";
import path from "node:path";
import { formatGigabytes } from "../../../json/quantities.ts";
import { ServiceError } from "../../../errors/service-error.ts";
import { removeFile, replaceFile, RESERVE_BYTES } from "../../../files/file-operations.ts";
import { linkInSnapshot, type RepoCache } from "../cache/repo-cache.ts";
import { downloadBlob, hasBlob, partSize, type PullTools } from "./download-blob.ts";
import type { PullMeter } from "./shared-downloads.ts";
import type { RepoFile, RepoListing } from "../hub-types.ts";

/** Downloads files of one commit into a repository's cache. */
export class SnapshotPull {
  readonly #tools: PullTools;
  readonly #cache: RepoCache;
  readonly #listing: RepoListing;

  constructor(tools: PullTools, cache: RepoCache, listing: RepoListing) {
    this.#tools = tools;
    this.#cache = cache;
    this.#listing = listing;
  }

  /** @throws ServiceError insufficient_disk */
  async checkSpace(files: readonly RepoFile[]): Promise<void> {
    let needed = 0;
    for (const file of files) {
      if ((await this.#isLinked(file)) || (await hasBlob(this.#cache, file))) continue;
      needed += file.size - Math.min(file.size, await partSize(this.#cache, file));
    }
    const folder = path.dirname(this.#cache.root);
    const free = needed === 0 ? undefined : await this.#tools.measureSpace(folder);
    if (free === undefined || free >= needed + RESERVE_BYTES) return;
    throw new ServiceError(
      "insufficient_disk",
      `The download needs ${formatGigabytes(needed)} more in ${folder}, where ${formatGigabytes(free)} are free; ${formatGigabytes(RESERVE_BYTES)} must stay free.`,
    );
  }

  /** Downloads the missing files one after another; each appears in the snapshot when it is complete. */
  async fetch(files: readonly RepoFile[], meter: PullMeter, signal: AbortSignal): Promise<void> {
    for (const file of files) {
      signal.throwIfAborted();
      while (!(await this.#tools.lock.run(() => this.#linkBlob(file))))
        await this.#download(file, meter, signal);
      meter.update(file.path, file.size);
    }
  }

  /** Saves the commit of a branch or tag, so that it can be resolved without the hub. */
  async writeRef(revision: string): Promise<void> {
    const { commit } = this.#listing;
    if (revision === commit) return;
    const target = path.join(this.#cache.refs, ...revision.split("/"));
    const { temporaryPath } = this.#cache;
    await this.#tools.lock.run(async () => {
      await this.#cache.makeFolder(path.dirname(target));
      await removeFile(temporaryPath);
      await writeFile(temporaryPath, commit, { flag: "wx" });
      await replaceFile(temporaryPath, target);
    });
  }

  async #download(file: RepoFile, meter: PullMeter, signal: AbortSignal): Promise<void> {
    const cache = this.#cache;
    const { repo, commit } = this.#listing;
    const remote = { hub: this.#tools.hub, repo, commit, file };
    await cache.makeFolder(cache.blobs);
    await cache.makeFolder(cache.locks);
    await this.#tools.downloads.run(
      cache.blob(file.digest.hex),
      async (report, shared) => await downloadBlob({ ...this.#tools, cache, remote, report }, shared),
      (event) => meter.update(file.path, event),
      signal,
    );
  }

  /** Adds the file to the snapshot; false if its blob is not complete. */
  async #linkBlob(file: RepoFile): Promise<boolean> {
    if (await this.#isLinked(file)) return true;
    if (!(await hasBlob(this.#cache, file))) return false;
    const target = this.#pathInSnapshot(file);
    await this.#cache.makeFolder(path.dirname(target));
    await linkInSnapshot(this.#cache.blob(file.digest.hex), target, this.#cache.temporaryPath);
    return true;
  }

  #pathInSnapshot(file: RepoFile): string {
    return this.#cache.snapshotFile(this.#listing.commit, file.path);
  }

  #isLinked(file: RepoFile): Promise<boolean> {
    return this.#cache.isComplete(this.#pathInSnapshot(file), file.size);
  }
}
