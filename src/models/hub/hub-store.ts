import type { PullProgress } from "../model.ts";
import type { HubSpec } from "../names/hub-spec.ts";

/** A complete model in the hub cache. */
export interface CachedModel {
  /** Canonical spec: find() with it gives this model again. Holds `@revision` unless that is main. */
  readonly spec: string;
  /** owner/repository */
  readonly repo: string;
  /** Commit hash of the snapshot. */
  readonly revision: string;
  /** Path of the first (or only) file inside the repository. */
  readonly file: string;
  /** Absolute paths in the snapshot, all shards in order; they are symlinks into blobs where the platform has them. */
  readonly files: readonly string[];
  /** Absolute path of the projector beside it, when there is one on disk. */
  readonly projector: string | undefined;
  readonly sizeBytes: number;
}

export interface HubPullRequest {
  readonly spec: HubSpec;
  /** Also fetch a projector: a file of the repository, or "auto" for the one the store finds there. */
  readonly projector: string | undefined;
}

/**
 * The hub cache and the hub behind it. Only this module knows the layout of the cache; it never reports a model
 * of which a file is missing or half-written.
 */
export interface HubStore {
  /** The cached model that a spec means; undefined when it is not (completely) on disk. Never asks the hub. */
  find(spec: HubSpec): Promise<CachedModel | undefined>;
  /** Every complete model in the cache, those that other tools have downloaded included. */
  list(): Promise<readonly CachedModel[]>;
  /** Downloads what is missing; callers with the same files share one download. Rejects with a ServiceError. */
  pull(
    request: HubPullRequest,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<CachedModel>;
  /** Removes the model's files and the blobs that nothing else uses. */
  remove(model: CachedModel): Promise<void>;
}

/**
 * What the hub says a file's content must hash to. The hub names the blob of a large file by the SHA-256 of its
 * content (the LFS object id), that of a small one by its git object id.
 */
export interface BlobDigest {
  readonly algorithm: "sha256" | "git-sha1";
  /** Lower-case hexadecimal; also the name of the blob in the cache. */
  readonly hex: string;
}

/** One file of a repository at one commit, as the hub lists it; every part has been checked. */
export interface RepoFile {
  /** Path inside the repository, with `/` between its parts. */
  readonly path: string;
  readonly size: number;
  readonly digest: BlobDigest;
  /** The hub can serve it from chunk storage; plain HTTP works too. */
  readonly xet: boolean;
}

/** A repository at one commit. */
export interface RepoListing {
  /** owner/repository */
  readonly repo: string;
  /** 40 hexadecimal digits. */
  readonly commit: string;
  readonly files: readonly RepoFile[];
}

const SHA256 = /^[0-9a-f]{64}$/;
const SHA1 = /^[0-9a-f]{40}$/;

export function isSha256(text: string): boolean {
  return SHA256.test(text);
}

/** True for a full git object id, the only form of a commit that becomes a folder's name. */
export function isCommit(text: string): boolean {
  return SHA1.test(text);
}
