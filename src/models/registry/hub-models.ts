import { ServiceError } from "../../errors/service-error.ts";
import type { RegistryOptions } from "../models-options.ts";
import type { CachedModel } from "../hub/hub-store.ts";
import { parseHubSpec, type HubSpec } from "../names/hub-spec.ts";
import { buildRecord, usableRecords, type ModelRecord } from "./model-record.ts";

/** The models of the hub cache. One file is one model: it goes by its alias, or by its spec when it has none. */
export class HubModels {
  readonly #options: RegistryOptions;
  readonly #isTaken: (alias: string) => boolean;

  /** @param isTaken true for a name that another model has: a hub model then goes by its spec */
  constructor(options: RegistryOptions, isTaken: (alias: string) => boolean) {
    this.#options = options;
    this.#isTaken = isTaken;
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
    const isMain = !cached.spec.includes("@");
    const alias = isMain ? this.#options.resolver.aliasOf(cached.repo, cached.file) : undefined;
    return alias === undefined || this.#isTaken(alias) ? cached.spec : alias;
  }

  /** Removes the files of a model of this catalog. */
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
      within: [this.#options.config.cache_dir],
    } as const;
    return await buildRecord(parts, this.#options.inspect);
  }
}
