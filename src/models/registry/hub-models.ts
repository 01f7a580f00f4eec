import type { Logger } from "pino";
import { ServiceError } from "../../errors/service-error.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import type { CachedModel, HubStore } from "../hub/hub-store.ts";
import { parseHubSpec, type HubSpec } from "../names/hub-spec.ts";
import type { NameResolver } from "../names/name-resolver.ts";
import { buildRecord, usableRecords, type ModelRecord } from "./model-record.ts";

export interface HubModelsOptions {
  readonly hub: HubStore;
  readonly resolver: Pick<NameResolver, "aliasOf">;
  /** The cache folder, which no symlink of a snapshot may leave. */
  readonly cacheDir: string;
  readonly inspect: InspectGguf;
  /** True for a name that another model has: a hub model then goes by its spec. */
  readonly isTaken: (alias: string) => boolean;
  readonly logger: Pick<Logger, "debug">;
}

/** The models of the hub cache. One file is one model: it goes by its alias, or by its spec when it has none. */
export class HubModels {
  readonly #options: HubModelsOptions;

  constructor(options: HubModelsOptions) {
    this.#options = options;
  }

  /** Every one that can be used. */
  async list(): Promise<readonly ModelRecord[]> {
    const { hub, logger } = this.#options;
    return await usableRecords(
      await hub.list(),
      async (cached) => await this.#record(cached),
      (error, { spec }) => logger.debug({ err: error, spec }, "A file of the hub cache is not a model"),
    );
  }

  async find(spec: HubSpec): Promise<ModelRecord | undefined> {
    const cached = await this.#options.hub.find(spec);
    return cached && (await this.#record(cached));
  }

  /** The name that a cached model goes by. */
  aliasOf(cached: CachedModel): string {
    const { resolver, isTaken } = this.#options;
    const isMain = !cached.spec.includes("@");
    const alias = isMain ? resolver.aliasOf(cached.repo, cached.file) : undefined;
    return alias === undefined || isTaken(alias) ? cached.spec : alias;
  }

  /** Removes the files of a model of this catalogue. */
  async remove(record: ModelRecord): Promise<void> {
    // Not by the list: it leaves out what another entry has the same content as.
    const { source } = record;
    const cached =
      source.kind === "hub" ? await this.#options.hub.find(parseHubSpec(source.spec)) : undefined;
    if (!cached)
      throw new ServiceError("model_not_found", `The model ${record.alias} is not on disk any more.`);
    await this.#options.hub.remove(cached);
  }

  async #record(cached: CachedModel): Promise<ModelRecord> {
    const { spec, repo, revision, projector, files } = cached;
    const parts = {
      alias: this.aliasOf(cached),
      source: { kind: "hub", spec, repo, revision },
      path: files[0] ?? "",
      projector,
      within: [this.#options.cacheDir],
    } as const;
    return await buildRecord(parts, this.#options.inspect);
  }
}
