import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import {
  type CachedModel,
  type Download,
  type HubPullRequest,
  type HubStore,
  type PullProgress,
  type PullResult,
  requestKey,
} from "./hub/hub-store.ts";
import type { NameResolver } from "./names/name-resolver.ts";
import type { HubModels } from "./registry/folder-models.ts";

interface PullsOptions {
  readonly hub: HubStore;
  readonly resolver: NameResolver;
  readonly models: Pick<HubModels, "aliasOf">;
  readonly events: Pick<ServiceEvents, "emit">;
}

/** Several pulls of the same files, which share one download. */
interface PullGroup extends Download {
  callers: number;
  announced: boolean;
  downloadedBytes: number;
  totalBytes: number;
}

/** The current pulls. */
export class Pulls {
  readonly #options: PullsOptions;
  /** By what is requested from the hub. */
  readonly #groups = new Map<string, PullGroup>();

  constructor(options: PullsOptions) {
    this.#options = options;
  }

  /** Whether the model with this name is being downloaded. */
  isPulling(name: string): boolean {
    const request = this.#request(name);
    return request !== undefined && this.#groups.has(requestKey(request));
  }

  get downloads(): readonly Download[] {
    return [...this.#groups.values()];
  }

  /** Deletes what an interrupted pull has left; returns how many bytes that were. */
  async discard(name: string, signal: AbortSignal): Promise<number> {
    return await this.#options.hub.discard(this.#require(name), signal);
  }

  /** Downloads an alias or a hub spec. Emits one model-downloaded event, however many callers wait for it. */
  async pull(
    name: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PullResult> {
    const request = this.#require(name);
    const key = requestKey(request);
    const group = this.#groups.get(key) ?? this.#newGroup(name);
    this.#groups.set(key, group);
    group.callers++;
    try {
      const report = (progress: PullProgress): void => {
        if (progress.status === "downloading") {
          group.downloadedBytes = progress.downloadedBytes;
          group.totalBytes = progress.totalBytes;
        }
        onProgress(progress);
      };
      const cached = await this.#options.hub.pull(request, report, signal);
      const alias = this.#options.models.aliasOf(cached);
      if (!group.announced) this.#announce(alias, cached);
      group.announced = true;
      return { alias, repo: cached.repo, sizeBytes: cached.sizeBytes };
    } finally {
      group.callers--;
      if (group.callers === 0) this.#groups.delete(key);
    }
  }

  /** Under the name that the model will have, as far as that is known. */
  #newGroup(name: string): PullGroup {
    const { resolver } = this.#options;
    const resolved = resolver.resolve(name);
    let alias: string | undefined = name;
    if (resolved.kind === "alias") alias = resolved.alias;
    else if (resolved.kind === "spec" && resolved.spec.file !== undefined)
      alias = resolver.aliasOf(`${resolved.spec.owner}/${resolved.spec.repo}`, resolved.spec.file);
    return { name, alias: alias ?? name, callers: 0, announced: false, downloadedBytes: 0, totalBytes: 0 };
  }

  #announce(alias: string, cached: CachedModel): void {
    this.#options.events.emit({ type: "model-downloaded", model: alias, size_bytes: cached.sizeBytes });
  }

  /** @throws ServiceError model_not_found for a name that means nothing on the hub */
  #require(name: string): HubPullRequest {
    const request = this.#request(name);
    if (request) return request;
    throw new ServiceError(
      "model_not_found",
      `"${name}" is not an alias of a model on the hub; a hub spec has the form hf:owner/repo[:file-or-quant][@revision].`,
      { param: "name" },
    );
  }

  /** What a name requests from the hub: with the projector of its alias, or the one that its repository has. */
  #request(name: string): HubPullRequest | undefined {
    const { resolver } = this.#options;
    const resolved = resolver.resolve(name);
    if (resolved.kind === "alias") return { spec: resolved.spec, projector: resolved.projector };
    if (resolved.kind !== "spec") return undefined;
    const { owner, repo, file } = resolved.spec;
    const alias = file === undefined ? undefined : resolver.aliasOf(`${owner}/${repo}`, file);
    const same = alias === undefined ? undefined : resolver.resolve(alias);
    return { spec: resolved.spec, projector: same?.kind === "alias" ? same.projector : "auto" };
  }
}
