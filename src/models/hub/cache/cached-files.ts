import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { listNames } from "../../../files/file-operations.ts";
import { type BlobDigest, isCommit, isSha256, type RepoFile, type RepoListing } from "../hub-store.ts";
import { RepoCache } from "./repo-cache.ts";
import { isGguf, readSnapshots } from "./snapshots.ts";

/** What the hub cache on this machine's disk has for other machines, by repository and digest. */
export class CachedFiles {
  readonly #cacheDir: string;
  readonly #fromHub: ReadonlySet<string>;

  /**
   * @param cacheDir contains the `models--owner--repo` folders
   * @param fromHub digests of what the hub sends at the moment
   */
  constructor(cacheDir: string, fromHub: ReadonlySet<string> = new Set()) {
    this.#cacheDir = cacheDir;
    this.#fromHub = fromHub;
  }

  /** The path of a file; undefined if it is not complete here. The names in it must have been checked. */
  async find({ repo, digest, size }: SharedFile): Promise<string | undefined> {
    const cache = await this.#repo(repo);
    const blob = cache?.blob(digest.hex);
    return blob !== undefined && (await cache?.isWhole(blob, size)) ? await cache?.real(blob) : undefined;
  }

  /**
   * The path of a file of which a part is here and more comes from the hub; undefined for others. One that comes from another
   * machine is none, or two machines could wait for each other.
   */
  async findGrowing({ repo, digest }: SharedFile): Promise<string | undefined> {
    if (!this.#fromHub.has(digest.hex)) return undefined;
    const cache = await this.#repo(repo);
    return await cache?.real(cache.part(digest.hex));
  }

  /** The models of a revision that are complete here; undefined if there are none. */
  async list(repo: string, revision: string): Promise<RepoListing | undefined> {
    const cache = await this.#repo(repo);
    if (cache === undefined) return undefined;
    const snapshots = await readSnapshots(cache, isGguf);
    const snapshot = snapshots.find(
      ({ commit, refs }) => commit === revision || (!isCommit(revision) && refs.includes(revision)),
    );
    if (snapshot === undefined || snapshot.files.length === 0) return undefined;
    const digests = await digestsOf(cache);
    const files = snapshot.files.flatMap(({ path: name, size, identity }): RepoFile[] => {
      const digest = digests.get(identity);
      return digest === undefined ? [] : [{ path: name, size, digest, xet: false }];
    });
    return { repo, commit: snapshot.commit, files };
  }

  async #repo(repo: string): Promise<RepoCache | undefined> {
    const folder = await realpath(this.#cacheDir).catch(() => undefined);
    return folder === undefined ? undefined : new RepoCache(folder, repo);
  }
}

/** The digests of a repository's blobs, by what identifies them on disk: snapshots have links to them, of any kind. */
async function digestsOf(cache: RepoCache): Promise<Map<string, BlobDigest>> {
  const digests = new Map<string, BlobDigest>();
  for (const hex of await listNames(cache.blobs)) {
    const digest = digestOf(hex);
    const info = digest && (await stat(path.join(cache.blobs, hex), { bigint: true }).catch(() => undefined));
    if (digest && info) digests.set(`${info.dev}:${info.ino}`, digest);
  }
  return digests;
}

function digestOf(hex: string): BlobDigest | undefined {
  if (isSha256(hex)) return { algorithm: "sha256", hex };
  return isCommit(hex) ? { algorithm: "git-sha1", hex } : undefined;
}

/** A file of the hub that other machines may have, too. */
export interface SharedFile {
  /** owner/repository */
  readonly repo: string;
  readonly digest: BlobDigest;
  readonly size: number;
}

/** A repository as another machine has it. */
export interface PeerListing {
  /** Name of the machine. */
  readonly machine: string;
  readonly listing: RepoListing;
}

/** Other machines, which may have what the hub has. What they send is checked like everything that is downloaded. */
export interface HubPeers {
  /**
   * Yields the bytes of a file from `offset` on, of whichever machines have it; ends early when none can go on.
   * @param onMachine called with the name of each machine that sends some
   * @throws the signal's reason
   */
  read(
    file: SharedFile,
    offset: number,
    onMachine: (name: string) => void,
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array>;
  /**
   * What other machines have of a repository, for when the hub cannot be asked.
   * @param revision branch, tag or commit
   */
  list(repo: string, revision: string, signal: AbortSignal): Promise<readonly PeerListing[]>;
}
