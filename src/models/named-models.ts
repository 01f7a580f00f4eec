import { realpath } from "node:fs/promises";
import { ServiceError } from "../errors/service-error.ts";
import type { DefaultModel } from "./default-model.ts";
import type { EnginePool } from "./loading/engine-pool.ts";
import type { LoadPlanner } from "./loading/load-planner.ts";
import { alreadyLoaded, type Lease, notLoaded, stillLoading } from "./loading/loaded-model.ts";
import type { ModelsOptions } from "./models-options.ts";
import type { LoadOptions, Residency } from "./models.ts";
import type { Pulls } from "./pulls.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import type { ModelRegistry } from "./registry/model-registry.ts";

interface NamedModelsOptions extends Pick<ModelsOptions, "config"> {
  readonly isLowPriority: ModelsOptions["isLowPriority"];
  readonly registry: ModelRegistry;
  readonly pool: EnginePool;
  readonly planner: LoadPlanner;
  readonly pulls: Pulls;
  readonly default: DefaultModel;
}

/** Finds models by name, and leases them, loading them on demand. */
export class NamedModels {
  readonly #options: NamedModelsOptions;

  constructor(options: NamedModelsOptions) {
    this.#options = options;
  }

  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<Lease> {
    const requestedName = name ?? (await this.#options.default.require(this.#exists));
    // Fast path without disk access: a loaded model under its alias.
    const lease =
      this.#options.pool.tryLease(requestedName) ??
      (await this.#leaseByName(requestedName, signal, residency));
    if (residency?.keepAliveMs !== undefined) lease.setKeepAlive(residency.keepAliveMs);
    return lease;
  }

  /** Leases a model by its name, or by "base:adapter" with one of its adapters. */
  async #leaseByName(name: string, signal: AbortSignal, residency?: Residency): Promise<Lease> {
    const parts = /^(.+):([^:]+)$/.exec(name);
    if (!parts || (await this.#exists(name))) return await this.#loadOnDemand(name, signal, residency);
    const [, base = "", adapter = ""] = parts;
    const { pool, registry } = this.#options;
    const record = pool.model(base)?.plan.record ?? (await registry.find(base));
    const isAdapter = record?.adapters.some((each) => each.name === adapter) === true;
    const lease = await this.#loadOnDemand(isAdapter ? base : name, signal, residency);
    if (isAdapter) lease.adapter = adapter;
    return lease;
  }

  /**
   * Loads a model for a request if necessary. With models.auto_load off, only requests with a residency load models,
   * and crashed engines are restarted.
   */
  async #loadOnDemand(name: string, signal: AbortSignal, residency?: Residency): Promise<Lease> {
    const { config, isLowPriority, pool, planner } = this.#options;
    const { auto_load: loadsOnDemand, keep_alive: keepAliveMs } = config.models;
    const record = await this.find(name);
    const { alias } = record;
    await pool.waitForUnload(alias, signal);
    const present = pool.model(alias);
    if (!loadsOnDemand && !residency && !pool.hasCrashed(alias) && present?.state !== "loaded") {
      throw present ? stillLoading(alias, "loaded") : notLoaded(alias);
    }
    const mayEvict = isLowPriority?.() ? "unused" : true;
    const overrides = { ...residency, keepAliveMs: residency?.keepAliveMs ?? keepAliveMs, mayEvict } as const;
    return await pool.lease(alias, async () => await planner.plan(record, overrides), signal);
  }

  /** @throws ServiceError model_not_found, or model_loading during its download */
  async find(name: string): Promise<ModelRecord> {
    const { pool, pulls, registry } = this.#options;
    const record = pool.model(name)?.plan.record ?? (await registry.find(name));
    if (record) return record;
    if (pulls.isPulling(name)) throw stillLoading(name, "downloaded");
    return await registry.require(name);
  }

  /** True if the name leads to a model; an unusable model counts as missing. */
  readonly #exists = async (name: string): Promise<boolean> =>
    await this.find(name).then(
      () => true,
      () => false,
    );
}

interface RecordToLoad {
  readonly record: ModelRecord;
  /** Undoes the registration of a new file; to be called if the load fails. */
  readonly undo: () => Promise<void>;
}

const noUndo = async (): Promise<void> => {};

/** Finds the model of a load request. A file that is not registered yet is registered under its alias. */
export async function recordToLoad(
  options: LoadOptions,
  registry: ModelRegistry,
  pool: Pick<EnginePool, "model">,
): Promise<RecordToLoad> {
  if (options.path !== undefined) return await registerPath(options, options.path, registry, pool);
  const resolved = registry.resolve(options.alias);
  await registry.restoreShipped(options.alias);
  const record =
    resolved.kind === "path"
      ? await registry.registerFile(resolved.path)
      : await registry.require(options.alias);
  return { record: await withFiles(record, options, registry), undo: noUndo };
}

async function registerPath(
  options: LoadOptions,
  path: string,
  registry: ModelRegistry,
  pool: Pick<EnginePool, "model">,
): Promise<RecordToLoad> {
  const alias = registry.newName(options.alias);
  if (pool.model(alias)?.state === "loaded") {
    throw alreadyLoaded(alias);
  }
  const record = await registry.files.inspect(alias, path, options.mmproj);
  if (!registry.files.has(alias)) {
    const other = await registry.find(alias);
    if (other && (await isSameFile(other, record))) {
      return { record: await withFiles(other, options, registry), undo: noUndo };
    }
    if (other)
      throw new ServiceError("model_exists", `"${alias}" is another model already; choose another alias.`);
  }
  const undo = await registry.files.add(record);
  return { record: await withFiles(record, { draft: options.draft }, registry), undo };
}

/** Adds the projector and the draft model of a load request to a record. */
async function withFiles(
  record: ModelRecord,
  { mmproj, draft }: Pick<LoadOptions, "mmproj" | "draft">,
  registry: ModelRegistry,
): Promise<ModelRecord> {
  return {
    ...record,
    ...(mmproj !== undefined && { projector: await registry.files.projector(mmproj) }),
    ...(draft !== undefined && { draft: registry.files.draft(draft) }),
  };
}

async function isSameFile(a: ModelRecord, b: ModelRecord): Promise<boolean> {
  const [one, other] = await Promise.all([realpath(a.files[0].path), realpath(b.files[0].path)]);
  return one === other;
}
