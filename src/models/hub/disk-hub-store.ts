import { mkdir, realpath } from "node:fs/promises";
import { pause } from "../../async/pause.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";
import { freeSpace, type FreeSpace } from "../../files/file-operations.ts";
import { FolderLock } from "../../files/locks.ts";
import { chooseModelFiles, chooseProjector, type HubSpec } from "../names/hub-spec.ts";
import { isRevision } from "../names/name-rules.ts";
import { CachedFiles, type HubPeers } from "./cache/cached-files.ts";
import { hasLeftovers, removeCached, removeLeftovers } from "./cache/remove-cached.ts";
import { isRepoName, RepoCache } from "./cache/repo-cache.ts";
import {
  chooseEntry,
  entriesAt,
  listCachedModels,
  listRepoCaches,
  MAIN,
  toCachedModel,
} from "./cache/snapshots.ts";
import { discardParts } from "./download/download-blob.ts";
import { PullMeter, SharedDownloads } from "./download/shared-downloads.ts";
import { type PullTools, SnapshotPull } from "./download/snapshot-pull.ts";
import {
  type CachedModel,
  type HubPullRequest,
  type HubRetry,
  type HubStore,
  isCommit,
  type PullProgress,
  type RepoFile,
  type RepoListing,
  requestKey,
} from "./hub-store.ts";
import { http1Fetch } from "./remote/http1-fetch.ts";
import { HubNetworkFailure, isTransient, toHubError } from "./remote/hub-error.ts";
import { HubFetch } from "./remote/hub-fetch.ts";
import { listRepo } from "./remote/list-repo.ts";
import type { Sleep } from "./remote/retry.ts";

export interface DiskHubStoreOptions {
  /** Contains the `models--owner--repo` folders; created by the first pull. */
  readonly cacheDir: string;
  /** Address of the hub; the token is sent nowhere else. */
  readonly hubUrl: string;
  readonly token?: string | undefined;
  readonly fetch?: typeof fetch;
  readonly sleep?: Sleep;
  readonly freeSpace?: FreeSpace;
  /** Milliseconds without data after which a connection is given up. */
  readonly stallTimeoutMs?: number;
}

/** The hub cache on this machine's disk, in the layout that the hub's own tools share. */
export class DiskHubStore implements HubStore {
  readonly #cacheDir: string;
  #tools: PullTools;
  /** What pulls of this process that have not ended well were to bring, so that discarding it needs no hub. */
  readonly #unfinished = new Map<string, readonly RepoFile[]>();

  constructor(options: DiskHubStoreOptions) {
    const { hubUrl, token, fetch = http1Fetch } = options;
    this.#cacheDir = options.cacheDir;
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

  /** Complete files, and those that the hub is sending at the moment, for other machines. */
  get files(): CachedFiles {
    return new CachedFiles(this.#cacheDir, this.#tools.fromHub);
  }

  /** Has files brought from other machines from now on, where they have them. */
  usePeers(peers: HubPeers): void {
    this.#tools = { ...this.#tools, peers };
  }

  async find(spec: HubSpec): Promise<CachedModel | undefined> {
    const repo = repoOf(spec);
    const cache = await this.#repoCache(repo);
    const entry = cache && chooseEntry(await entriesAt(cache, spec.revision), spec);
    return entry && toCachedModel(repo, entry);
  }

  async list(): Promise<readonly CachedModel[]> {
    return await listCachedModels(this.#cacheDir);
  }

  async pull(
    request: HubPullRequest,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<CachedModel> {
    const repo = repoOf(request.spec);
    const revision = request.spec.revision ?? MAIN;
    return await this.#explained(request.spec, signal, () =>
      this.#pull(request, repo, revision, onProgress, signal),
    );
  }

  /** Runs what asks the hub, and turns a failure of it into one for the client. */
  async #explained<T>(spec: HubSpec, signal: AbortSignal, action: () => Promise<T>): Promise<T> {
    const { repo, revision = MAIN } = { ...spec, repo: repoOf(spec) };
    try {
      return await action();
    } catch (error) {
      signal.throwIfAborted();
      const known = toHubError(error, { hub: this.#tools.hub, repo, revision });
      if (known instanceof ServiceError) throw known;
      const said = toError(known).message;
      throw new ServiceError("internal_error", `${repo} could not be stored in ${this.#cacheDir}: ${said}.`, {
        cause: error,
      });
    }
  }

  async remove(model: CachedModel): Promise<void> {
    const cache = await this.#repoCache(model.repo);
    if (cache) await this.#tools.lock.run(() => removeCached(cache, model));
  }

  async discard(request: HubPullRequest, signal: AbortSignal): Promise<number> {
    const repo = repoOf(request.spec);
    const files = this.#unfinished.get(requestKey(request)) ?? (await this.#remoteFiles(request, signal));
    const cache = await this.#repoCache(repo);
    const freed = cache ? await discardParts(cache, files, this.#tools, signal) : 0;
    this.#unfinished.delete(requestKey(request));
    return freed;
  }

  /** Removes what killed processes have left in the cache, and abandoned downloads. */
  async removeLeftovers(): Promise<void> {
    for (const cache of await listRepoCaches(this.#cacheDir))
      if (await hasLeftovers(cache)) await this.#tools.lock.run(() => removeLeftovers(cache));
  }

  async #pull(
    request: HubPullRequest,
    repo: string,
    revision: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<CachedModel> {
    signal.throwIfAborted();
    const cached = isCommit(revision) ? await this.find(request.spec) : undefined;
    // A commit never changes, so a complete copy on disk needs no hub.
    if (cached !== undefined && (request.projector === undefined || cached.projector !== undefined)) {
      new PullMeter(cached.sizeBytes, onProgress).update(cached.file, cached.sizeBytes);
      return cached;
    }
    const listing = await this.#listing(request, repo, revision, onProgress, signal);
    const { model, projector } = choosePullFiles(listing, request);
    const files = projector === undefined ? model : [...model, projector];
    this.#unfinished.set(requestKey(request), files);

    await mkdir(this.#cacheDir, { recursive: true });
    const cache = new RepoCache(await realpath(this.#cacheDir), repo);
    const pull = new SnapshotPull(this.#tools, cache, listing);
    await pull.checkSpace(files);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    await pull.fetch(files, new PullMeter(total, onProgress), signal);
    await pull.writeRef(revision);
    this.#unfinished.delete(requestKey(request));

    const entries = await entriesAt(cache, request.spec.revision);
    const entry = entries.find(
      ({ snapshot, files: [first] }) => snapshot.commit === listing.commit && first?.path === model[0]?.path,
    );
    if (entry === undefined)
      throw new ServiceError("model_file_not_found", `${repo} was removed while it was being pulled.`);
    return toCachedModel(repo, entry);
  }

  /** What the hub has, or where it cannot be asked, what another machine has that it has brought from there. */
  async #listing(
    request: HubPullRequest,
    repo: string,
    revision: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<RepoListing> {
    const { hub, sleep, peers } = this.#tools;
    const onRetry = (retry: HubRetry): void => onProgress({ status: "retrying", ...retry });
    try {
      return await listRepo({ hub, repo, revision, sleep, onRetry, signal });
    } catch (error) {
      signal.throwIfAborted();
      // An answer of the hub counts, also when it refuses.
      const isUnanswered = error instanceof HubNetworkFailure || isTransient(error);
      if (peers === undefined || !isUnanswered) throw error;
      const offers = await peers.list(repo, revision, signal);
      const offer = offers.find(({ listing }) => fits(listing, request));
      if (offer === undefined) throw error;
      const text = `The hub cannot be reached: ${repo} is what ${offer.machine}, a machine of the fleet, has brought from there`;
      onProgress({ status: "noted", text });
      return offer.listing;
    }
  }

  /** The files that a request means, as the hub lists them. */
  async #remoteFiles(request: HubPullRequest, signal: AbortSignal): Promise<readonly RepoFile[]> {
    const { hub, sleep } = this.#tools;
    const { spec } = request;
    return await this.#explained(spec, signal, async () => {
      const at = { repo: repoOf(spec), revision: spec.revision ?? MAIN };
      const listing = await listRepo({ hub, ...at, sleep, onRetry: () => {}, signal });
      const { model, projector } = choosePullFiles(listing, request);
      return projector === undefined ? model : [...model, projector];
    });
  }

  /** The cache of a repository; undefined while the cache folder does not exist. */
  async #repoCache(repo: string): Promise<RepoCache | undefined> {
    const folder = await realpath(this.#cacheDir).catch(() => undefined);
    return folder === undefined ? undefined : new RepoCache(folder, repo);
  }
}

/** @throws ServiceError invalid_model_name: the parts of a spec become parts of paths and addresses. */
function repoOf({ owner, repo, revision }: HubSpec): string {
  const name = `${owner}/${repo}`;
  if (!isRepoName(name) || (revision !== undefined && !isRevision(revision)))
    throw new ServiceError(
      "invalid_model_name",
      "Not a hub spec: its owner, repository or revision is malformed.",
    );
  return name;
}

/** Whether a listing has what a request means. */
function fits(listing: RepoListing, request: HubPullRequest): boolean {
  try {
    choosePullFiles(listing, request);
    return true;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}

/** The files that a pull downloads. */
interface PullFiles {
  /** All shards in order. */
  readonly model: readonly RepoFile[];
  readonly projector: RepoFile | undefined;
}

/** @throws ServiceError hub_repo_not_found for a named file that is not there, no_gguf_in_repo */
export function choosePullFiles(
  { repo, files }: RepoListing,
  { spec, projector }: HubPullRequest,
): PullFiles {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const paths = [...byPath.keys()];
  const chosen = chooseModelFiles(paths, spec);
  if (chosen === undefined) throw noFittingFile(repo, spec);
  const projectorPath = projector === "auto" ? chooseProjector(paths, chosen[0]!) : projector;
  const projectorFile = projectorPath === undefined ? undefined : byPath.get(projectorPath);
  if (projector !== undefined && projector !== "auto" && projectorFile === undefined)
    throw new ServiceError("hub_repo_not_found", `${repo} has no projector file ${projector}.`);
  return { model: chosen.map((path) => byPath.get(path)!), projector: projectorFile };
}

function noFittingFile(repo: string, { file, quant }: HubSpec): ServiceError {
  if (file !== undefined) return new ServiceError("hub_repo_not_found", `${repo} has no file ${file}.`);
  return new ServiceError(
    "no_gguf_in_repo",
    quant === undefined
      ? `${repo} has no GGUF model; look for a repository whose name ends in -GGUF.`
      : `${repo} has no GGUF model with quantization ${quant}.`,
  );
}
