import { ServiceError } from "../errors/service-error.ts";
import type { DefaultModel } from "./default-model.ts";
import type { EngineLoan, EnginePool } from "./loading/engine-pool.ts";
import type { LoadPlanner } from "./loading/load-planner.ts";
import type { ModelLease, Residency } from "./model.ts";
import type { ModelFinder } from "./model-finder.ts";
import type { ModelViews } from "./model-views.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import { stillLoading } from "./still-loading.ts";

export interface ModelLenderOptions {
  readonly pool: EnginePool;
  readonly planner: LoadPlanner;
  readonly finder: ModelFinder;
  readonly views: ModelViews;
  readonly defaultModel: Pick<DefaultModel, "alias" | "refresh">;
  /** Load a model for a request that asks for it. */
  readonly autoLoad: boolean;
  /** How long such a model stays loaded behind its last request, unless the request says so. */
  readonly keepAliveMs: number;
}

/** Lends models to requests, and loads them for that where it may. */
export class ModelLender {
  readonly #options: ModelLenderOptions;

  constructor(options: ModelLenderOptions) {
    this.#options = options;
  }

  /** See {@link Models.acquire}. */
  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease> {
    const { pool, finder, defaultModel } = this.#options;
    let wanted = name ?? defaultModel.alias;
    if (name === undefined && !(wanted !== undefined && (await this.#isThere(wanted)))) {
      // Another daemon that shares the cache has deleted it, or the first model has come since.
      await defaultModel.refresh();
      wanted = defaultModel.alias;
    }
    if (wanted === undefined)
      throw new ServiceError(
        "model_not_found",
        "There is no model that generates text on this machine; download one with POST /api/models/pull or daybreak pull.",
      );
    // The usual case, a loaded model by its own name, asks nothing of the disk.
    const loan = pool.tryLend(wanted);
    if (loan) return this.#lease(loan, residency);
    const record = await finder.require(wanted);
    await pool.settled(record.alias, signal);
    const settled = pool.tryLend(record.alias);
    return this.#lease(settled ?? (await this.#loadAndLend(record, signal, residency)), residency);
  }

  async #isThere(alias: string): Promise<boolean> {
    const { pool, finder } = this.#options;
    if (pool.slot(alias)) return true;
    // What is wrong with it is told when it is wanted.
    return await finder.require(alias).then(
      () => true,
      () => false,
    );
  }

  /** Loads a model for a request that asks for it, because the configuration says so, or because its engine has crashed. */
  async #loadAndLend(
    record: ModelRecord,
    signal: AbortSignal,
    residency: Residency | undefined,
  ): Promise<EngineLoan> {
    const { pool, planner, autoLoad, keepAliveMs } = this.#options;
    const { alias } = record;
    const crashed = pool.crashedRequest(alias);
    if (!autoLoad && !residency && !crashed) {
      throw pool.slot(alias)?.state === "loading" ? stillLoading(alias, "loaded") : notLoaded(alias);
    }
    const request =
      crashed ??
      (await planner.plan(record, {
        contextSize: residency?.contextSize,
        gpuLayers: residency?.gpuLayers,
        keepAliveMs: residency?.keepAliveMs ?? keepAliveMs,
        mayEvict: true,
      }));
    return await pool.lend(alias, request, signal);
  }

  #lease({ engine, slot, ...loan }: EngineLoan, residency: Residency | undefined): ModelLease {
    if (residency?.keepAliveMs !== undefined) slot.keepFor(residency.keepAliveMs);
    return {
      model: this.#options.views.showRunning(slot),
      engine,
      [Symbol.dispose]: () => loan[Symbol.dispose](),
    };
  }
}

function notLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_not_loaded",
    `The model "${alias}" is not loaded; load it with POST /api/models/load {"alias": ${JSON.stringify(alias)}} or "daybreak load ${alias}", or start the daemon with --auto-load.`,
    { param: "model" },
  );
}
