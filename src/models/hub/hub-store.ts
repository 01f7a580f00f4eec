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
