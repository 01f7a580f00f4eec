import type { EnginePool } from "./loading/engine-pool.ts";
import type { Pulls } from "./pulls.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import type { ModelRegistry } from "./registry/model-registry.ts";
import { stillLoading } from "./still-loading.ts";

export interface ModelFinderOptions {
  readonly registry: Pick<ModelRegistry, "find" | "list" | "require">;
  readonly pool: Pick<EnginePool, "slot" | "slots">;
  readonly pulls: Pick<Pulls, "isPulling">;
}

/** Finds models wherever they are: what runs, what is on disk, what is being downloaded. */
export class ModelFinder {
  readonly #options: ModelFinderOptions;

  constructor(options: ModelFinderOptions) {
    this.#options = options;
  }

  /** What is on disk; what runs is listed even when its file has gone. */
  async list(): Promise<readonly ModelRecord[]> {
    const { registry, pool } = this.#options;
    const onDisk = await registry.list();
    const names = new Set(onDisk.map(({ alias }) => alias));
    const running = pool.slots().map((slot) => slot.request.record);
    return [...onDisk, ...running.filter(({ alias }) => !names.has(alias))];
  }

  /** @throws ServiceError model_not_found, or model_loading while it is being downloaded */
  async require(name: string): Promise<ModelRecord> {
    const { registry, pool, pulls } = this.#options;
    const record = pool.slot(name)?.request.record ?? (await registry.find(name));
    if (record) return record;
    if (pulls.isPulling(name)) throw stillLoading(name, "downloaded");
    return await registry.require(name);
  }
}
