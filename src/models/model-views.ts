import type { DefaultModel } from "./default-model.ts";
import type { EnginePool } from "./loading/engine-pool.ts";
import type { EngineSlot } from "./loading/engine-slot.ts";
import type { LoadPlanner } from "./loading/load-planner.ts";
import { makeModel } from "./make-model.ts";
import type { Model } from "./model.ts";
import type { Pulls } from "./pulls.ts";
import type { ModelRecord } from "./registry/model-record.ts";

export interface ModelViewsOptions {
  readonly pool: Pick<EnginePool, "slot">;
  readonly planner: Pick<LoadPlanner, "contextSize">;
  readonly pulls: Pick<Pulls, "isPulling">;
  readonly defaultModel: Pick<DefaultModel, "alias">;
}

/** Shows models as the layers above see them, at this moment. */
export class ModelViews {
  readonly #options: ModelViewsOptions;

  constructor(options: ModelViewsOptions) {
    this.#options = options;
  }

  async show(record: ModelRecord): Promise<Model> {
    const slot = this.#options.pool.slot(record.alias);
    return this.#make(record, slot, await slot?.engine?.memoryUsage());
  }

  /** Without the memory that it takes, whose measurement a request would have to wait for. */
  showRunning(slot: EngineSlot): Model {
    return this.#make(slot.request.record, slot, undefined);
  }

  #make(record: ModelRecord, slot: EngineSlot | undefined, memoryBytes: number | undefined): Model {
    const { planner, pulls, defaultModel } = this.#options;
    return makeModel(record, {
      slot,
      memoryBytes,
      isDefault: record.alias === defaultModel.alias,
      isPulling: pulls.isPulling(record.alias),
      planner,
    });
  }
}
