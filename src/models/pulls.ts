import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { DiskHubStore } from "./hub/disk-hub-store.ts";
import {
  type Download,
  type HubPullRequest,
  type PullProgress,
  type PullResult,
  requestKey,
} from "./hub/hub-types.ts";
import type { NameResolver } from "./names/name-resolver.ts";
import type { HubModels } from "./registry/folder-models.ts";

interface PullsOptions {
  readonly hub: DiskHubStore;
  readonly resolver: NameResolver;
  readonly models: HubModels;
  readonly events: Pick<ServiceEvents, "emit">;
}

/** Concurrent pulls of the same files, which share one download. */
interface PullGroup extends Download {
  callers: number;
  isAnnounced: boolean;
  downloadedBytes: number;
  totalBytes: number;
}

interface PullTarget {
  readonly request: HubPullRequest;
  /** Alias that the model will have, if that is known before the download; otherwise the name itself. */
  readonly alias: string;
}

/** Pulls in progress. */
export class Pulls {
  readonly #options: PullsOptions;
  readonly #groups = new Map<string, PullGroup>();

  constructor(options: PullsOptions) {
    this.#options = options;
  }

  /** True if the model with this name is being downloaded. */
  isPulling(name: string): boolean {
    const target = this.#find(name);
    return target !== undefined && this.#groups.has(requestKey(target.request));
  }

  get downloads(): readonly Download[] {
    return [...this.#groups.values()];
  }

  /** Deletes the partial files of an interrupted pull and returns their bytes. */
  async discard(name: string, signal: AbortSignal): Promise<number> {
    return await this.#options.hub.discard(this.#require(name).request, signal);
  }

  /** Downloads an alias or a hub spec. Emits one model-downloaded event per group of callers. */
  async pull(
    name: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PullResult> {
    const { request, alias: expected } = this.#require(name);
    const key = requestKey(request);
    const group = this.#groups.get(key) ?? {
      name,
      alias: expected,
      callers: 0,
      isAnnounced: false,
      downloadedBytes: 0,
      totalBytes: 0,
    };
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
      const { repo, sizeBytes } = cached;
      if (!group.isAnnounced)
        this.#options.events.emit({ type: "model-downloaded", model: alias, size_bytes: sizeBytes });
      group.isAnnounced = true;
      return { alias, repo, sizeBytes };
    } finally {
      group.callers--;
      if (group.callers === 0) this.#groups.delete(key);
    }
  }

  /** @throws ServiceError model_not_found for a name that is no alias or spec of a model on the hub */
  #require(name: string): PullTarget {
    const target = this.#find(name);
    if (target) return target;
    throw new ServiceError(
      "model_not_found",
      `"${name}" is not an alias of a model on the hub; a hub spec has the form hf:owner/repo[:file-or-quant][@revision].`,
      { param: "name" },
    );
  }

  /** Finds what a name means, with the projector of its alias, or else any projector in the repository. */
  #find(name: string): PullTarget | undefined {
    const { resolver } = this.#options;
    const resolved = resolver.resolve(name);
    if (resolved.kind === "alias")
      return { request: { spec: resolved.spec, projector: resolved.projector }, alias: resolved.name };
    if (resolved.kind !== "spec") return undefined;
    const { owner, repo, file } = resolved.spec;
    const alias = file === undefined ? undefined : resolver.aliasOf(`${owner}/${repo}`, file);
    const known = alias === undefined ? undefined : resolver.resolve(alias);
    const projector = known?.kind === "alias" ? known.projector : "auto";
    return { request: { spec: resolved.spec, projector }, alias: alias ?? name };
  }
}
