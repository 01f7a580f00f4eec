import { mkdir, realpath } from "node:fs/promises";
import { pause } from "../../async/promises.ts";
import { ServiceError, toError } from "../../errors/service-error.ts";
import { freeSpace, type FreeSpace } from "../../files/file-operations.ts";
import { FolderLock } from "../../files/locks.ts";
import { chooseModelFiles, chooseProjector, type HubSpec } from "../names/hub-spec.ts";
import { isRepoName, isRevision } from "../names/name-rules.ts";
import { CachedFiles, type HubPeers } from "./cache/cached-files.ts";
import { hasLeftovers, removeCached, removeLeftovers } from "./cache/remove-cached.ts";
import { RepoCache } from "./cache/repo-cache.ts";
import {
  chooseEntry,
  entriesAt,
  listCachedModels,
  listRepoCaches,
  MAIN,
  toCachedModel,
} from "./cache/snapshots.ts";
import { discardParts, type PullTools } from "./download/download-blob.ts";
import { PullMeter, SharedDownloads } from "./download/shared-downloads.ts";
import { SnapshotPull } from "./download/snapshot-pull.ts";
import {
  type CachedModel,
  type HubPullRequest,
  isCommit,
  type PullProgress,
  type RepoFile,
  type RepoListing,
  requestKey,
} from "./hub-types.ts";
import { http1Fetch } from "./remote/http1-fetch.ts";
import { HubNetworkFailure, isTransient, toHubError } from "./remote/hub-error.ts";
import { HubFetch } from "./remote/hub-fetch.ts";
import { listRepo } from "./remote/list-repo.ts";
import type { Sleep } from "./remote/retry.ts";

export interface DiskHubStoreOptions {
  /** Folder of the `models--owner--repo` folders; created by the first pull. */
  readonly cacheDir: string;
  /** Address of the hub, the only place the token is sent to. */
  readonly hubUrl: string;
  readonly token?: string | undefined;
  readonly fetch?: typeof fetch;
  readonly sleep?: Sleep;
  readonly freeSpace?: FreeSpace;
  /** Milliseconds without data after which a connection is closed. */
  readonly stallTimeoutMs?: number;
}

interface PullTarget {
  /** owner/repository */
  readonly repo: string;
  /** Branch, tag or commit. */
  readonly revision: string;
}

/**
 * The hub and its cache on this machine's disk, in the layout that the hub's own tools share. A model with missing or
 * incomplete files is never returned.
 */
export class DiskHubStore {
  readonly cacheDir: string;
  #tools: PullTools;
  /** Files of this process's failed and interrupted pulls, so that discard() needs no request to the hub. */
  readonly #unfinished = new Map<string, readonly RepoFile[]>();

  constructor(options: DiskHubStoreOptions) {
    const { hubUrl, token, fetch = http1Fetch } = options;
    this.cacheDir = options.cacheDir;
    this.#tools = {
      hub: new HubFetch({ hubUrl, token, fetch }),
      sleep: options.sleep ?? pause,
      measureSpace: options.freeSpace ?? freeSpace,
      stallTimeoutMs: options.stallTimeoutMs,
      downloads: new SharedDownloads(),
      peers: undefined,
      fromHub: new Set(),
      lock: new FolderLock(options.cacheDir),
    };
  }

  /** Access to the hub, for requests that are no downloads. */
  get remote(): Pick<PullTools, "hub" | "sleep"> {
    return this.#tools;
  }

  /** Cached files to serve to other machines. */
  get files(): CachedFiles {
    return new CachedFiles(this.cacheDir, this.#tools.fromHub);
  }

  /** Sets the other machines from which files are downloaded if they have them. */
  usePeers(peers: HubPeers): void {
    this.#tools = { ...this.#tools, peers };
  }

  /** Finds the cached model that a spec means; undefined if it is not complete on disk. Sends no request to the hub. */
  async find(spec: HubSpec): Promise<CachedModel | undefined> {
    const repo = repoOf(spec);
    const cache = await RepoCache.open(this.cacheDir, repo);
    const entry = cache && chooseEntry(await entriesAt(cache, spec.revision), spec);
    return entry && toCachedModel(repo, entry);
  }

  /** Lists every complete model in the cache, including those downloaded by other tools. */
  async list(): Promise<readonly CachedModel[]> {
    return await listCachedModels(this.cacheDir);
  }

  /** Downloads missing files; concurrent pulls of the same files share one download. Rejects with a ServiceError. */
  async pull(
    request: HubPullRequest,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<CachedModel> {
    return await this.#withHubErrors(request.spec, signal, (target) =>
      this.#pull(request, target, onProgress, signal),
    );
  }

  /** Runs an action that calls the hub, and converts its failure to an error for the client. */
  async #withHubErrors<T>(
    spec: HubSpec,
    signal: AbortSignal,
    action: (target: PullTarget) => Promise<T>,
  ): Promise<T> {
    const target = { repo: repoOf(spec), revision: spec.revision ?? MAIN };
    try {
      return await action(target);
    } catch (error) {
      signal.throwIfAborted();
      const hubError = toHubError(error, { hub: this.#tools.hub, ...target });
      if (hubError instanceof ServiceError) throw hubError;
      const problem = `${target.repo} could not be stored in ${this.cacheDir}: ${toError(hubError).message}.`;
      throw new ServiceError("internal_error", problem, { cause: error });
    }
  }

  /** Deletes the model's files and the blobs that no other file uses. */
  async remove(model: CachedModel): Promise<void> {
    const cache = await RepoCache.open(this.cacheDir, model.repo);
    if (cache) await this.#tools.lock.run(() => removeCached(cache, model));
  }

  /**
   * Deletes the partial files of an interrupted pull and returns their bytes.
   * @throws ServiceError model_busy while the files are being downloaded
   */
  async discard(request: HubPullRequest, signal: AbortSignal): Promise<number> {
    const files = this.#unfinished.get(requestKey(request)) ?? (await this.#remoteFiles(request, signal));
    const cache = await RepoCache.open(this.cacheDir, repoOf(request.spec));
    const freed = cache ? await discardParts(cache, files, this.#tools, signal) : 0;
    this.#unfinished.delete(requestKey(request));
    return freed;
  }

  async removeLeftovers(): Promise<void> {
    for (const cache of await listRepoCaches(this.cacheDir))
      if (await hasLeftovers(cache)) await this.#tools.lock.run(() => removeLeftovers(cache));
  }

  async #pull(
    request: HubPullRequest,
    { repo, revision }: PullTarget,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<CachedModel> {
    signal.throwIfAborted();
    const cached = isCommit(revision) ? await this.find(request.spec) : undefined;
    // A commit never changes, so a complete copy on disk needs no request to the hub.
    if (cached !== undefined && (request.projector === undefined || cached.projector !== undefined)) {
      new PullMeter(cached.sizeBytes, onProgress).update(cached.file, cached.sizeBytes);
      return cached;
    }
    const listing = await this.#listing(request, { repo, revision }, onProgress, signal);
    const files = choosePullFiles(listing, request);
    this.#unfinished.set(requestKey(request), files);

    await mkdir(this.cacheDir, { recursive: true });
    const cache = new RepoCache(await realpath(this.cacheDir), repo);
    const pull = new SnapshotPull(this.#tools, cache, listing);
    await pull.checkSpace(files);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    await pull.fetch(files, new PullMeter(total, onProgress), signal);
    await pull.writeRef(revision);
    this.#unfinished.delete(requestKey(request));

    const entries = await entriesAt(cache, request.spec.revision);
    const entry = entries.find(
      ({ snapshot, files: [first] }) => snapshot.commit === listing.commit && first?.path === files[0]?.path,
    );
    if (entry === undefined)
      throw new ServiceError("model_file_not_found", `${repo} was removed while it was being pulled.`);
    return toCachedModel(repo, entry);
  }

  /** Lists a repository on the hub or, while that is unreachable, on another machine that has downloaded from it. */
  async #listing(
    request: HubPullRequest,
    { repo, revision }: PullTarget,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<RepoListing> {
    const { hub, sleep, peers } = this.#tools;
    try {
      return await listRepo({ hub, repo, revision, sleep, onRetry: onProgress, signal });
    } catch (error) {
      signal.throwIfAborted();
      // A refusal by the hub is final.
      const isUnanswered = error instanceof HubNetworkFailure || isTransient(error);
      if (peers === undefined || !isUnanswered) throw error;
      const offers = await peers.list(repo, revision, signal);
      const offer = offers.find(({ listing }) => satisfies(listing, request));
      if (offer === undefined) throw error;
      const text = `The hub cannot be reached: using the copy of ${repo} on ${offer.machine}, a machine of the fleet`;
      onProgress({ status: "noted", text });
      return offer.listing;
    }
  }

  async #remoteFiles(request: HubPullRequest, signal: AbortSignal): Promise<readonly RepoFile[]> {
    const { hub, sleep } = this.#tools;
    return await this.#withHubErrors(request.spec, signal, async (target) => {
      const listing = await listRepo({ hub, ...target, sleep, onRetry: () => {}, signal });
      return choosePullFiles(listing, request);
    });
  }
}

/**
 * Returns owner/repository, checked because it becomes part of paths and URLs.
 * @throws ServiceError invalid_model_name
 */
function repoOf({ owner, repo, revision }: HubSpec): string {
  const name = `${owner}/${repo}`;
  if (!isRepoName(name) || (revision !== undefined && !isRevision(revision)))
    throw new ServiceError(
      "invalid_model_name",
      "Not a hub spec: its owner, repository or revision is malformed.",
    );
  return name;
}

function satisfies(listing: RepoListing, request: HubPullRequest): boolean {
  try {
    choosePullFiles(listing, request);
    return true;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}

/**
 * Chooses the files to download: all shards in order, and the projector.
 * @throws ServiceError hub_repo_not_found for a missing file, no_gguf_in_repo
 */
function choosePullFiles({ repo, files }: RepoListing, { spec, projector }: HubPullRequest): RepoFile[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const paths = [...byPath.keys()];
  const chosen = chooseModelFiles(paths, spec);
  if (chosen === undefined) throw noMatchingFile(repo, spec);
  const projectorPath = projector === "auto" ? chooseProjector(paths, chosen[0]!) : projector;
  const projectorFile = projectorPath === undefined ? undefined : byPath.get(projectorPath);
  if (projector !== undefined && projector !== "auto" && projectorFile === undefined)
    throw new ServiceError("hub_repo_not_found", `${repo} has no projector file ${projector}.`);
  return [...chosen.map((path) => byPath.get(path)!), ...(projectorFile ? [projectorFile] : [])];
}

function noMatchingFile(repo: string, { file, quant }: HubSpec): ServiceError {
  if (file !== undefined) return new ServiceError("hub_repo_not_found", `${repo} has no file ${file}.`);
  if (quant === undefined) return noGgufIn(repo);
  return new ServiceError("no_gguf_in_repo", `${repo} has no GGUF model with quantization ${quant}.`);
}

/** Error for a repository without GGUF files. */
export function noGgufIn(repo: string): ServiceError {
  return new ServiceError(
    "no_gguf_in_repo",
    `${repo} has no GGUF model; look for a repository whose name ends in -GGUF.`,
  );
}
