import os from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { StartEngine } from "../engine/engine.ts";
import { machineProcessors, type Processors } from "../engine/machine-processors.ts";
import type { Kernels } from "../engine/prepare-engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import { DefaultModel } from "./default-model.ts";
import { DefinitionEditor } from "./definition-editor.ts";
import { createGgufInspector } from "./gguf/inspect-gguf.ts";
import type { HubStore } from "./hub/hub-store.ts";
import { createDigestVerifier } from "./integrity/verify-digest.ts";
import { type Clock, systemClock } from "./loading/clock.ts";
import { EnginePool, type EngineLoan } from "./loading/engine-pool.ts";
import type { EngineSlot } from "./loading/engine-slot.ts";
import { type EstimateMemory, LoadPlanner, type PlaceLayers } from "./loading/load-planner.ts";
import { makeModel } from "./make-model.ts";
import type {
  DeletedModel,
  Download,
  LoadOptions,
  Model,
  ModelLease,
  Models,
  PullProgress,
  PullResult,
  Residency,
} from "./model.ts";
import type { PrintModelfile, ReadModelfile } from "./modelfile/model-definition.ts";
import type { NameResolver } from "./names/resolve-name.ts";
import { Pulls } from "./pulls.ts";
import { recordToLoad } from "./record-to-load.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import { ModelRegistry } from "./registry/model-registry.ts";
import { StateFile } from "./state/state-file.ts";

/** Part of the machine's memory that engines may use when no budget is configured. */
const DEFAULT_MEMORY_SHARE = 0.8;
/** Loading takes seconds; then a request can succeed. */
const LOADING_RETRY_SECS = 2;

export interface ModelsOptions {
  readonly config: Pick<Config, "models" | "engine" | "cache_dir">;
  readonly startEngine: StartEngine;
  readonly estimateMemory: EstimateMemory;
  readonly placeLayers: PlaceLayers;
  readonly hub: HubStore;
  readonly resolver: NameResolver;
  readonly readModelfile: ReadModelfile;
  readonly printModelfile: PrintModelfile;
  /** Folder of the models that ship with the project. */
  readonly shippedDir: string;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "debug" | "warn">;
  readonly clock?: Clock;
  /** The default is the machine's. */
  readonly processors?: Processors;
  readonly kernels: Kernels;
  /** Bytes of memory of the machine. */
  readonly machineMemory?: number;
}

/** Makes the {@link Models} of a daemon: reads the saved state and looks at what is on disk, loads nothing. */
export async function createModelsService(options: ModelsOptions): Promise<Models> {
  const state = await StateFile.open(options.config.cache_dir, options.logger);
  const service = new ModelsService(options, state);
  await service.refreshDefault();
  return service;
}

class ModelsService implements Models {
  readonly #autoLoad: boolean;
  readonly #keepAliveMs: number;
  readonly #registry: ModelRegistry;
  readonly #pool: EnginePool;
  readonly #planner: LoadPlanner;
  readonly #pulls: Pulls;
  readonly #default: DefaultModel;
  readonly #definitions: DefinitionEditor;
  readonly #events: Pick<ServiceEvents, "emit">;

  constructor(options: ModelsOptions, state: StateFile) {
    const { config, hub, resolver, events, logger, readModelfile } = options;
    const { clock = systemClock, processors = machineProcessors(), machineMemory = os.totalmem() } = options;
    const inspect = createGgufInspector();
    const verifyDigest = createDigestVerifier();
    this.#autoLoad = config.models.auto_load;
    this.#keepAliveMs = config.models.keep_alive;
    this.#events = events;
    this.#registry = new ModelRegistry({
      state,
      resolver,
      hub,
      readModelfile,
      inspect,
      logger,
      shippedDir: options.shippedDir,
      cacheDir: config.cache_dir,
      allowedDirs: config.models.allowed_dirs,
    });
    const memoryBudget = config.models.memory_budget || Math.floor(machineMemory * DEFAULT_MEMORY_SHARE);
    this.#pool = new EnginePool({
      startEngine: options.startEngine,
      events,
      clock,
      memoryBudget,
    });
    this.#planner = new LoadPlanner({
      config,
      inspect,
      verifyDigest,
      estimateMemory: options.estimateMemory,
      placeLayers: options.placeLayers,
      processors,
      machineMemory,
      memoryBudget,
      kernels: options.kernels,
      logger,
    });
    this.#pulls = new Pulls({ hub, resolver, models: this.#registry.hub, events });
    this.#default = new DefaultModel({
      registry: this.#registry,
      state,
      configured: config.models.default,
      logger,
    });
    this.#definitions = new DefinitionEditor({
      registry: this.#registry,
      planner: this.#planner,
      readModelfile,
      printModelfile: options.printModelfile,
      events,
    });
  }

  get defaultAlias(): string | undefined {
    return this.#default.alias;
  }

  get downloads(): readonly Download[] {
    return this.#pulls.downloads;
  }

  async refreshDefault(): Promise<void> {
    await this.#default.refresh();
  }

  async list(): Promise<readonly Model[]> {
    const onDisk = await this.#registry.list();
    const names = new Set(onDisk.map(({ alias }) => alias));
    // What runs is listed even when its file has gone.
    const running = this.#pool.slots().map((slot) => slot.request.record);
    const records = [...onDisk, ...running.filter(({ alias }) => !names.has(alias))];
    return await Promise.all(records.map(async (record) => await this.#model(record)));
  }

  async get(name: string): Promise<Model> {
    return await this.#model(await this.#require(name));
  }

  async setDefault(alias: string): Promise<void> {
    const record = await this.#require(alias);
    await this.#default.choose(record.alias);
  }

  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease> {
    const wanted = name ?? this.#default.alias;
    if (wanted === undefined)
      throw new ServiceError(
        "model_not_found",
        "There is no model that generates text on this machine; download one with POST /api/models/pull or daybreak pull.",
      );
    // The usual case, a loaded model by its own name, asks nothing of the disk.
    const loan = this.#pool.tryLend(wanted);
    if (loan) return this.#lease(loan, residency);
    const record = await this.#require(wanted);
    await this.#pool.settled(record.alias, signal);
    const settled = this.#pool.tryLend(record.alias);
    return this.#lease(settled ?? (await this.#loadAndLend(record, signal, residency)), residency);
  }

  async load(options: LoadOptions, signal?: AbortSignal): Promise<Model> {
    const { record, undo } = await recordToLoad(options, this.#registry, this.#pool);
    const { alias } = record;
    try {
      const request = await this.#planner.plan(record, {
        contextSize: options.contextSize,
        gpuLayers: options.gpuLayers,
        keepAliveMs: options.keepAliveMs ?? Number.POSITIVE_INFINITY,
        mayEvict: this.#autoLoad,
      });
      await this.#pool.load(alias, request, signal);
    } catch (error) {
      await undo();
      throw error;
    }
    if (options.setDefault) await this.#default.choose(alias);
    else await this.#default.refresh();
    return await this.#model(record);
  }

  async unload(name: string, options: { onlyIdle?: boolean } = {}): Promise<void> {
    const { alias } = await this.#require(name);
    await this.#pool.unload(alias, "request", options);
  }

  async delete(name: string): Promise<DeletedModel> {
    const alias = this.#registry.ownName(name) ?? (await this.#require(name)).alias;
    if (this.#pulls.isPulling(alias)) {
      throw new ServiceError("model_busy", `The model "${alias}" is being downloaded.`);
    }
    const why = new ServiceError("model_not_found", `The model "${alias}" has been deleted.`);
    await this.#pool.clear(alias, why, "request");
    const source = await this.#registry.remove(alias);
    await this.#default.refresh();
    this.#events.emit({ type: "model-deleted", model: alias });
    return { alias, source };
  }

  async pull(
    name: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PullResult> {
    const shipped = await this.#registry.restoreShipped(name);
    const result = shipped
      ? { alias: shipped.alias, repo: "", sizeBytes: shipped.gguf.fileSize }
      : await this.#pulls.pull(name, onProgress, signal);
    await this.#default.refresh();
    return result;
  }

  async create(alias: string, modelfile: string, options: { baseFolder?: string }): Promise<Model> {
    return await this.#model(await this.#definitions.create(alias, modelfile, options.baseFolder));
  }

  async copy(source: string, target: string): Promise<Model> {
    return await this.#model(await this.#definitions.copy(await this.#require(source), target));
  }

  async modelfile(name: string): Promise<string> {
    return this.#definitions.print(await this.#require(name));
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #require(name: string): Promise<ModelRecord> {
    const record = this.#pool.slot(name)?.request.record ?? (await this.#registry.find(name));
    if (record) return record;
    if (this.#pulls.isPulling(name)) {
      throw new ServiceError("model_loading", `The model "${name}" is being downloaded.`, {
        retryAfterSecs: LOADING_RETRY_SECS,
      });
    }
    return await this.#registry.require(name);
  }

  /** Loads a model for a request that asks for it, because the configuration says so, or because its engine has crashed. */
  async #loadAndLend(
    record: ModelRecord,
    signal: AbortSignal,
    residency: Residency | undefined,
  ): Promise<EngineLoan> {
    const { alias } = record;
    const crashed = this.#pool.crashedRequest(alias);
    if (!this.#autoLoad && !residency && !crashed) throw this.#notLoaded(alias, this.#pool.slot(alias));
    const request =
      crashed ??
      (await this.#planner.plan(record, {
        contextSize: residency?.contextSize,
        gpuLayers: residency?.gpuLayers,
        keepAliveMs: residency?.keepAliveMs ?? this.#keepAliveMs,
        mayEvict: true,
      }));
    return await this.#pool.lend(alias, request, signal);
  }

  #notLoaded(alias: string, slot: EngineSlot | undefined): ServiceError {
    if (slot?.state === "loading") {
      return new ServiceError("model_loading", `The model "${alias}" is being loaded.`, {
        retryAfterSecs: LOADING_RETRY_SECS,
      });
    }
    return new ServiceError(
      "model_not_loaded",
      `The model "${alias}" is not loaded; load it with POST /api/models/load {"alias": ${JSON.stringify(alias)}} or "daybreak load ${alias}", or start the daemon with --auto-load.`,
      { param: "model" },
    );
  }

  #lease({ engine, slot, ...loan }: EngineLoan, residency: Residency | undefined): ModelLease {
    if (residency?.keepAliveMs !== undefined) slot.keepFor(residency.keepAliveMs);
    return {
      model: makeModel(slot.request.record, this.#circumstances(slot.alias, slot, undefined)),
      engine,
      [Symbol.dispose]: () => loan[Symbol.dispose](),
    };
  }

  async #model(record: ModelRecord): Promise<Model> {
    const slot = this.#pool.slot(record.alias);
    const memoryBytes = await slot?.engine?.memoryUsage();
    return makeModel(record, this.#circumstances(record.alias, slot, memoryBytes));
  }

  #circumstances(
    alias: string,
    slot: EngineSlot | undefined,
    memoryBytes: number | undefined,
  ): Parameters<typeof makeModel>[1] {
    return {
      slot,
      memoryBytes,
      isDefault: alias === this.#default.alias,
      isPulling: this.#pulls.isPulling(alias),
      planner: this.#planner,
    };
  }
}
