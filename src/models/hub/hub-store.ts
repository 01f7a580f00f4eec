import type { HubSpec } from "../names/hub-spec.ts";

/** A complete model in the hub cache. */
export interface CachedModel {
  /** Canonical spec, by which find() returns this model again. Contains `@revision` unless it is main. */
  readonly spec: string;
  /** owner/repository */
  readonly repo: string;
  /** Commit hash of the snapshot. */
  readonly revision: string;
  /** Path of the first (or only) file inside the repository. */
  readonly file: string;
  /** Absolute paths in the snapshot, all shards in order; symlinks into blobs where the platform supports them. */
  readonly files: readonly string[];
  /** Absolute path of its projector, if there is one on disk. */
  readonly projector: string | undefined;
  readonly sizeBytes: number;
}

export interface HubPullRequest {
  readonly spec: HubSpec;
  /** Also fetch a projector: a file of the repository, or "auto" for the one the store finds there. */
  readonly projector: string | undefined;
}

/** The same text for requests of the same files. */
export function requestKey({ spec, projector }: HubPullRequest): string {
  const { owner, repo, file, quant, revision } = spec;
  return JSON.stringify([owner, repo, file, quant, revision, projector]);
}

/**
 * The hub and its cache. Only this module knows the layout of the cache; it never reports a model with missing or
 * incomplete files.
 */
export interface HubStore {
  /** The cached model that a spec means; undefined if it is not complete on disk. Never asks the hub. */
  find(spec: HubSpec): Promise<CachedModel | undefined>;
  /** Every complete model in the cache, including those downloaded by other tools. */
  list(): Promise<readonly CachedModel[]>;
  /** Downloads what is missing; callers with the same files share one download. Rejects with a ServiceError. */
  pull(
    request: HubPullRequest,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<CachedModel>;
  /**
   * Removes what an interrupted pull has left, and returns how many bytes that were.
   * @throws ServiceError model_busy while the files are being downloaded
   */
  discard(request: HubPullRequest, signal: AbortSignal): Promise<number>;
  /** Removes the model's files and the blobs that nothing else uses. */
  remove(model: CachedModel): Promise<void>;
}

/**
 * The hash that the hub gives for a file's content: for a large file its SHA-256 (the LFS object id), for a small one
 * its git object id.
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
  /** Whether the hub can serve it from chunk storage; plain HTTP works, too. */
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

/** Whether the text is a full git object id, the only form of a commit used as a folder's name. */
export function isCommit(text: string): boolean {
  return SHA1.test(text);
}

export type PullProgress =
  | { readonly status: "downloading"; readonly downloadedBytes: number; readonly totalBytes: number }
  | { readonly status: "verifying" }
  /** The hub did not answer correctly; it is asked again after the wait. */
  | ({ readonly status: "retrying" } & HubRetry)
  /** Something that people may want to know, in a sentence without its full stop. */
  | { readonly status: "noted"; readonly text: string };

export interface HubRetry {
  /** What went wrong, in a few words. */
  readonly reason: string;
  readonly waitMs: number;
}

/** A download under way. */
export interface Download {
  /** The name by which it was asked for first. */
  readonly name: string;
  /** The name that the model will have. */
  readonly alias: string;
  readonly downloadedBytes: number;
  /** 0 until the hub has told it. */
  readonly totalBytes: number;
}

export interface PullResult {
  readonly alias: string;
  /** owner/repository on the hub; empty for a model that ships. */
  readonly repo: string;
  readonly sizeBytes: number;
}
