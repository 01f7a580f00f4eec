import { ServiceError } from "../../errors/service-error.ts";
import { chooseModelFiles, groupModels } from "../names/hub-spec.ts";
import { isQuantization, quantizationOf } from "../names/model-file-names.ts";
import { isRepoName } from "../names/name-rules.ts";
import { RepoCache } from "./cache/repo-cache.ts";
import { MAIN } from "./cache/snapshots.ts";
import { partSize } from "./download/download-blob.ts";
import { type DiskHubStore, noGgufIn } from "./disk-hub-store.ts";
import type { RepoFile } from "./hub-types.ts";
import type { HubFetch } from "./remote/hub-fetch.ts";
import { HubHttpFailure, toHubError } from "./remote/hub-error.ts";
import { type HubRepo, listRepo, repoInfo, type RepoInfo, searchRepos } from "./remote/list-repo.ts";
import { type BackOffOptions, withRetries } from "./remote/retry.ts";

export interface HubOffer {
  readonly spec: string;
  /** Path of the first file. */
  readonly file: string;
  readonly shards: number;
  readonly quantization: string | undefined;
  /** Bytes of all shards. */
  readonly sizeBytes: number;
  /** Bytes on disk of an interrupted download. */
  readonly partialBytes: number;
  readonly isOnDisk: boolean;
}

export interface HubOffers extends RepoInfo {
  /** owner/repository */
  readonly repo: string;
  /** Models, the smallest first. */
  readonly offers: readonly HubOffer[];
}

/** Timeout of a request; a search usually takes a second. */
const TIMEOUT_MS = 20_000;

/** Searches the hub and lists the models in a repository. */
export class HubCatalog {
  readonly #store: DiskHubStore;

  constructor(store: DiskHubStore) {
    this.#store = store;
  }

  get #hub(): HubFetch {
    return this.#store.remote.hub;
  }

  /** Address of the hub, without a slash at its end. */
  get url(): string {
    return this.#hub.url;
  }

  /**
   * Finds repositories with GGUF files whose names match, the most downloaded first.
   * @throws ServiceError hub_unreachable, hub_answer_invalid or hub_access_denied
   */
  async search(query: string, limit: number, signal: AbortSignal): Promise<readonly HubRepo[]> {
    return await this.#withHubErrors("a search", signal, async (deadline) =>
      withRetries(() => searchRepos(this.#hub, query, limit, deadline), this.#retries, deadline),
    );
  }

  /**
   * Lists the models of a repository, one for each quantization.
   * @throws ServiceError invalid_model_name, hub_repo_not_found, no_gguf_in_repo, or as {@link search}
   */
  async offers(repo: string, signal: AbortSignal): Promise<HubOffers> {
    if (!isRepoName(repo))
      throw new ServiceError("invalid_model_name", "A repository of the hub is written owner/repository.");
    const [info, { files }] = await this.#withHubErrors(repo, signal, async (deadline) => {
      const target = { hub: this.#hub, repo, revision: MAIN };
      const listing = listRepo({ ...target, ...this.#retries, signal: deadline });
      return await Promise.all([repoInfo(this.#hub, repo, deadline), listing]);
    });
    const byPath = new Map(files.map((file) => [file.path, file]));
    const paths = [...byPath.keys()];
    const cache = await RepoCache.open(this.#store.cacheDir, repo);
    const offers = groupModels(paths).map(async ([first = "", ...others]) => {
      const shards = [first, ...others].map((path) => byPath.get(path)!);
      return await this.#offer(repo, paths, shards, cache);
    });
    if (offers.length === 0) throw noGgufIn(repo);
    return {
      repo,
      ...info,
      offers: (await Promise.all(offers)).toSorted((one, other) => one.sizeBytes - other.sizeBytes),
    };
  }

  async #offer(
    repo: string,
    paths: readonly string[],
    shards: readonly RepoFile[],
    cache: RepoCache | undefined,
  ): Promise<HubOffer> {
    const file = shards[0]!.path;
    const quantization = quantizationOf(file);
    // The spec has the short form unless that means another file of the repository.
    const isUnambiguous =
      quantization !== undefined &&
      isQuantization(quantization) &&
      chooseModelFiles(paths, { quant: quantization })?.[0] === file;
    const [owner = "", name = ""] = repo.split("/");
    const isOnDisk = (await this.#store.find({ owner, repo: name, file })) !== undefined;
    const parts = cache ? await Promise.all(shards.map((shard) => partSize(cache, shard))) : [];
    return {
      spec: `hf:${repo}:${isUnambiguous ? quantization : file}`,
      file,
      shards: shards.length,
      quantization,
      sizeBytes: shards.reduce((sum, { size }) => sum + size, 0),
      partialBytes: parts.reduce((sum, size) => sum + size, 0),
      isOnDisk,
    };
  }

  get #retries(): Pick<BackOffOptions, "sleep" | "onRetry"> {
    return { sleep: this.#store.remote.sleep, onRetry: () => undefined };
  }

  /** Runs an action that calls the hub, with a timeout, and converts its failure to an error for the client. */
  async #withHubErrors<T>(
    subject: string,
    signal: AbortSignal,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    try {
      return await action(AbortSignal.any([signal, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      const { url } = this.#hub;
      if (timeout.aborted)
        throw new ServiceError("hub_unreachable", `The hub at ${url} does not answer in time. Try again.`, {
          cause: error,
        });
      if (!isRepoName(subject) && error instanceof HubHttpFailure && error.status === 404)
        throw new ServiceError(
          "hub_answer_invalid",
          `The hub at ${url} cannot be searched. A model whose repository is known can still be pulled by its hub spec.`,
          { cause: error },
        );
      throw toHubError(error, { hub: this.#hub, repo: subject, revision: MAIN });
    }
  }
}
