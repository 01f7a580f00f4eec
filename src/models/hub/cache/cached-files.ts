import { stat } from "node:fs/promises";
import path from "node:path";
import { listNames } from "../../../files/file-operations.ts";
import { type BlobDigest, isCommit, isSha256, type RepoFile, type RepoListing } from "../hub-types.ts";
import { RepoCache } from "./repo-cache.ts";
import { isGguf } from "../../names/model-file-names.ts";
import { identityOf, readSnapshots, snapshotAt } from "./snapshots.ts";

/** Files of the hub cache on this machine's disk that it serves to other machines, by repository and digest. */
export class CachedFiles {
  readonly #cacheDir: string;
  readonly #fromHub: ReadonlySet<string>;

  /** @param fromHub digests of the files that the hub is sending at the moment */
  constructor(cacheDir: string, fromHub: ReadonlySet<string> = new Set()) {
    this.#cacheDir = cacheDir;
    this.#fromHub = fromHub;
  }

  /** Returns the path of a complete file; undefined if there is none. The caller has checked the names in it. */
  async find({ repo, digest, size }: SharedFile): Promise<string | undefined> {
    const cache = await RepoCache.open(this.#cacheDir, repo);
    const blob = cache?.blob(digest.hex) ?? "";
    return (await cache?.isComplete(blob, size)) ? await cache?.realPath(blob) : undefined;
  }

  /**
   * Returns the path of a partial file that the hub is sending; undefined for others. A file that another machine is
   * sending does not count, or two machines could wait for each other.
   */
  async findPartial({ repo, digest }: SharedFile): Promise<string | undefined> {
    if (!this.#fromHub.has(digest.hex)) return undefined;
    const cache = await RepoCache.open(this.#cacheDir, repo);
    return await cache?.realPath(cache.part(digest.hex));
  }

  /** Lists the models of a revision that are complete here; undefined if there are none. */
  async list(repo: string, revision: string): Promise<RepoListing | undefined> {
    const cache = await RepoCache.open(this.#cacheDir, repo);
    if (cache === undefined) return undefined;
    const snapshot = snapshotAt(await readSnapshots(cache, isGguf), revision);
    if (snapshot === undefined || snapshot.files.length === 0) return undefined;
    const digests = await digestsOf(cache);
    const files = snapshot.files.flatMap(({ path: name, size, identity }): RepoFile[] => {
      const digest = digests.get(identity);
      return digest === undefined ? [] : [{ path: name, size, digest, xet: false }];
    });
    return { repo, commit: snapshot.commit, files };
  }
}

/**
 * Returns the digests of a repository's blobs by device and inode, because snapshots have symlinks or hard links to
 * them.
 */
async function digestsOf(cache: RepoCache): Promise<Map<string, BlobDigest>> {
  const digests = new Map<string, BlobDigest>();
  for (const hex of await listNames(cache.blobs)) {
    const digest = digestOf(hex);
    const info = digest && (await stat(path.join(cache.blobs, hex), { bigint: true }).catch(() => undefined));
    if (digest && info) digests.set(identityOf(info), digest);
  }
  return digests;
}

function digestOf(hex: string): BlobDigest | undefined {
  if (isSha256(hex)) return { algorithm: "sha256", hex };
  return isCommit(hex) ? { algorithm: "git-sha1", hex } : undefined;
}

/** A file of the hub that other machines may have. */
export interface SharedFile {
  /** owner/repository */
  readonly repo: string;
  readonly digest: BlobDigest;
  readonly size: number;
}

/** Files of a repository that another machine has. */
export interface PeerListing {
  readonly machine: string;
  readonly listing: RepoListing;
}

/** Other machines, which may have files of the hub. Their data is verified like that of the hub. */
export interface HubPeers {
  /**
   * Yields the bytes of a file from `offset` on, from any machines that have it; ends early if none can continue.
   * @param onMachine called with the name of each machine that sends data
   * @throws the signal's reason
   */
  read(
    file: SharedFile,
    offset: number,
    onMachine: (name: string) => void,
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array>;
  /** Lists what other machines have of a repository, in case the hub is unreachable. */
  list(repo: string, revision: string, signal: AbortSignal): Promise<readonly PeerListing[]>;
}
