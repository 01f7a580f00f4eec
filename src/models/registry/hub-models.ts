import { ServiceError } from "../../errors/service-error.ts";
import type { RegistryOptions } from "../models-options.ts";
import type { CachedModel } from "../hub/hub-store.ts";
import { parseHubSpec, type HubSpec } from "../names/hub-spec.ts";
import { buildRecord, usableRecords, type ModelRecord } from "./model-record.ts";

/** The models of the hub cache. Each file is a model, named by its alias, or by its spec if it has none. */
export class HubModels {
  readonly #options: RegistryOptions;
  readonly #isTaken: (alias: string) => boolean;

  /** @param isTaken whether another model has the name; a hub model is then named by its spec */
  constructor(options: RegistryOptions, isTaken: (alias: string) => boolean) {
    this.#options = options;
    this.#isTaken = isTaken;
  }

  /** All usable models. */
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

  /** The name of a cached model. */
  aliasOf(cached: CachedModel): string {
    const isMain = !cached.spec.includes("@");
    const alias = isMain ? this.#options.resolver.aliasOf(cached.repo, cached.file) : undefined;
    return alias === undefined || this.#isTaken(alias) ? cached.spec : alias;
  }

  /** Removes the files of a model. */
  async remove(record: ModelRecord): Promise<void> {
    // Not from the list, which leaves out entries with the same content.
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
