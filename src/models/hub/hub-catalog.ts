import { realpath } from "node:fs/promises";
import { pause } from "../../async/pause.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { chooseModelFiles, groupModels } from "../names/hub-spec.ts";
import { isQuantization, quantizationOf } from "../names/model-file-names.ts";
import { isRepoName, RepoCache } from "./cache/repo-cache.ts";
import { partSize } from "./download/download-blob.ts";
import type { HubStore, RepoFile } from "./hub-store.ts";
import { http1Fetch } from "./remote/http1-fetch.ts";
import { HubFetch } from "./remote/hub-fetch.ts";
import { HubHttpFailure, toHubError } from "./remote/hub-error.ts";
import { type HubRepo, listRepo, repoInfo, type RepoInfo, searchRepos } from "./remote/list-repo.ts";
import { type Sleep, withRetries } from "./remote/retry.ts";

/** One model of a repository. */
export interface HubOffer {
  /** What to pull. */
  readonly spec: string;
  /** The first file. */
  readonly file: string;
  /** How many files it has. */
  readonly shards: number;
  readonly quantization: string | undefined;
  /** Bytes of all shards. */
  readonly sizeBytes: number;
  /** Bytes of an interrupted download. */
  readonly partialBytes: number;
  readonly isOnDisk: boolean;
}

export interface HubOffers extends RepoInfo {
  /** owner/repository */
  readonly repo: string;
  /** As few bytes as possible first. */
  readonly offers: readonly HubOffer[];
}

const MAIN = "main";
/** A search answers in a second. */
const TIMEOUT_MS = 20_000;

interface HubCatalogOptions {
  readonly hubUrl: string;
  readonly token?: string | undefined;
  /** Folder of the hub cache. */
  readonly cacheDir: string;
  readonly store: Pick<HubStore, "find">;
  readonly sleep?: Sleep;
}

/** What the hub has, for people who look for a model. */
export class HubCatalog {
  readonly #hub: HubFetch;
  readonly #options: HubCatalogOptions;

  constructor(options: HubCatalogOptions) {
    const { hubUrl, token } = options;
    this.#hub = new HubFetch({ hubUrl, token, fetch: http1Fetch });
    this.#options = options;
  }

  /** Address of the hub, without a slash at its end. */
  get url(): string {
    return this.#hub.url;
  }

  /**
   * Repositories with GGUF files whose names match, those downloaded most first.
   * @throws ServiceError hub_unreachable, hub_answer_invalid or hub_access_denied
   */
  async search(query: string, limit: number, signal: AbortSignal): Promise<readonly HubRepo[]> {
    return await this.#explained("a search", signal, async (inTime) =>
      withRetries(() => searchRepos(this.#hub, query, limit, inTime), this.#retries, inTime),
    );
  }

  /**
   * The models of a repository, one for each quantization that it offers.
   * @param repo owner/repository
   * @throws ServiceError invalid_model_name, hub_repo_not_found, no_gguf_in_repo, or as {@link search}
   */
  async offers(repo: string, signal: AbortSignal): Promise<HubOffers> {
    if (!isRepoName(repo))
      throw new ServiceError("invalid_model_name", "A repository of the hub is written owner/repository.");
    const [info, { files }] = await this.#explained(repo, signal, async (inTime) => {
      const listing = listRepo({
        hub: this.#hub,
        repo,
        revision: MAIN,
        ...this.#retries,
        signal: inTime,
      });
      return await Promise.all([repoInfo(this.#hub, repo, inTime), listing]);
    });
    const byPath = new Map(files.map((file) => [file.path, file]));
    const paths = [...byPath.keys()];
    const cache = await this.#cache(repo);
    const offers = groupModels(paths).map(async ([first = "", ...others]) => {
      const shards = [first, ...others].map((path) => byPath.get(path)!);
      return await this.#offer(repo, paths, shards, cache);
    });
    if (offers.length === 0)
      throw new ServiceError(
        "no_gguf_in_repo",
        `${repo} has no GGUF model; look for a repository whose name ends in -GGUF.`,
      );
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
    // The short form, unless it means another file of the repository.
    const isMeant =
      quantization !== undefined &&
      isQuantization(quantization) &&
      chooseModelFiles(paths, { quant: quantization })?.[0] === file;
    const [owner = "", name = ""] = repo.split("/");
    const isOnDisk = (await this.#options.store.find({ owner, repo: name, file })) !== undefined;
    const parts = cache ? await Promise.all(shards.map((shard) => partSize(cache, shard))) : [];
    return {
      spec: `hf:${repo}:${isMeant ? quantization : file}`,
      file,
      shards: shards.length,
      quantization,
      sizeBytes: shards.reduce((sum, { size }) => sum + size, 0),
      partialBytes: parts.reduce((sum, size) => sum + size, 0),
      isOnDisk,
    };
  }

  async #cache(repo: string): Promise<RepoCache | undefined> {
    const folder = await realpath(this.#options.cacheDir).catch(() => undefined);
    return folder === undefined ? undefined : new RepoCache(folder, repo);
  }

  get #retries(): { sleep: Sleep; onRetry: () => void } {
    return { sleep: this.#options.sleep ?? pause, onRetry: () => undefined };
  }

  /** Runs what asks the hub, in time, and turns a failure into one for the client. */
  async #explained<T>(
    subject: string,
    signal: AbortSignal,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = AbortSignal.timeout(TIMEOUT_MS);
    try {
      return await action(AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      const { url } = this.#hub;
      if (late.aborted)
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
