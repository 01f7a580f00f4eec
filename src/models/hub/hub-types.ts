import type { HubSpec } from "../names/hub-spec.ts";

/** A complete model in the hub cache. */
export interface CachedModel {
  /** Canonical spec, by which find() returns this model. Has `@revision` unless that is main. */
  readonly spec: string;
  /** owner/repository */
  readonly repo: string;
  readonly revision: string;
  /** Path of the first (or only) file inside the repository. */
  readonly file: string;
  /** Absolute paths in the snapshot, all shards in order; symlinks to blobs where the platform supports them. */
  readonly files: readonly string[];
  /** Absolute path of its projector; undefined if none is on disk. */
  readonly projector: string | undefined;
  readonly sizeBytes: number;
}

export interface HubPullRequest {
  readonly spec: HubSpec;
  /** Projector to download as well: a file of the repository, or "auto" to find one there. */
  readonly projector: string | undefined;
}

/** Returns a key that is the same for requests of the same files. */
export function requestKey({ spec, projector }: HubPullRequest): string {
  const { owner, repo, file, quant, revision } = spec;
  return JSON.stringify([owner, repo, file, quant, revision, projector]);
}

/**
 * Hash of a file's content on the hub: SHA-256 (the LFS object id) of a large file, git object id of a small one.
 */
export interface BlobDigest {
  readonly algorithm: "sha256" | "git-sha1";
  /** Lower-case hexadecimal, which is also the name of the blob in the cache. */
  readonly hex: string;
}

/** A file of a repository at one commit, from the hub's listing; every field has been checked. */
export interface RepoFile {
  /** Path inside the repository, with `/` between its parts. */
  readonly path: string;
  readonly size: number;
  readonly digest: BlobDigest;
  /** True if the hub also serves it from chunk storage (Xet). */
  readonly xet: boolean;
}

export interface RepoListing {
  /** owner/repository */
  readonly repo: string;
  /** Commit hash, 40 hexadecimal digits. */
  readonly commit: string;
  readonly files: readonly RepoFile[];
}

export function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** True if the text is a full git object id, the only form of a commit in names of snapshot folders. */
export function isCommit(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

export type PullProgress =
  | { readonly status: "downloading"; readonly downloadedBytes: number; readonly totalBytes: number }
  | { readonly status: "verifying" }
  | HubRetry
  /** Note for users, a sentence without its final period. */
  | { readonly status: "noted"; readonly text: string };

/** A request has failed and is retried after the wait. */
export interface HubRetry {
  readonly status: "retrying";
  readonly reason: string;
  readonly waitMs: number;
}

export interface Download {
  /** Name in the first request for it. */
  readonly name: string;
  readonly alias: string;
  readonly downloadedBytes: number;
  /** 0 until the hub has listed the files. */
  readonly totalBytes: number;
}

export interface PullResult {
  readonly alias: string;
  /** owner/repository on the hub; empty for a model that ships. */
  readonly repo: string;
  readonly sizeBytes: number;
}
