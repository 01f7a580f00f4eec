import path from "node:path";
import { machineProcessors } from "../engine/machine-limits.ts";
import { ServiceError } from "../errors/service-error.ts";
import { memoryTotal } from "../machine/memory.ts";
import { BlobStore, allowFolders } from "./blobs/blob-store.ts";
import { DefaultModel } from "./default-model.ts";
import { describeModel } from "./describe-model.ts";
import { createGgufInspector } from "./gguf/inspect-gguf.ts";
import { configuredAllowance, systemClock } from "./loading/available-memory.ts";
import { ImportedFiles, type ImportRequest, type ImportStep } from "./import/imported-files.ts";
import { importModels } from "./import/import-models.ts";
import { EnginePool } from "./loading/engine-pool.ts";
import { estimateFit } from "./loading/estimate-fit.ts";
import {
  alreadyLoaded,
  type Lease,
  type LoadedModel,
  notLoaded,
  stillLoading,
} from "./loading/loaded-model.ts";
import { LoadPlanner } from "./loading/load-planner.ts";
import type { DeletedModel, LoadOptions, ModelFit, Models, ModelSizes, Residency } from "./models.ts";
import type { Model } from "./model.ts";
import type { Download, PullProgress, PullResult } from "./hub/hub-types.ts";
import type { QuantizedModel, QuantizeOptions, QuantizeProgress } from "./quantize/quantize-options.ts";
import type { ModelsOptions } from "./models-options.ts";
import { Pulls } from "./pulls.ts";
import { ModelQuantizer } from "./quantize/model-quantizer.ts";
import type { CheckDefinition } from "./registry/defined-models.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import { ModelRegistry } from "./registry/model-registry.ts";
import { ModelSlots } from "./slots/model-slots.ts";
import { PromptCache } from "./slots/prompt-cache.ts";
import { StateFile } from "./registry/state-file.ts";

export class ModelsService implements Models {
  readonly #options: ModelsOptions;
  readonly #registry: ModelRegistry;
  readonly #pool: EnginePool;
  readonly #planner: LoadPlanner;
  readonly #pulls: Pulls;
  readonly #default: DefaultModel;
  readonly slots: ModelSlots;
  readonly #quantizer: ModelQuantizer;
  readonly blobs: BlobStore;
  readonly #imported: ImportedFiles;

  /** Creates the models service. Reads the saved state and finds the models on disk, but loads none. */
  static async create(options: ModelsOptions): Promise<Models> {
    const state = await StateFile.open(options.config.cache_dir, options.logger);
    const service = new ModelsService(options, state);
    await service.#default.refresh();
    return service;
  }

  private constructor(options: ModelsOptions, state: StateFile) {
    this.#options = options;
    const isNamedByModel = (file: string): boolean =>
      state.current.definitions.some(({ modelfile }) => modelfile.includes(file)) ||
      state.current.files.some((known) => [known.path, known.projector].includes(file));
    this.blobs = new BlobStore(path.join(options.config.cache_dir, "blobs"), isNamedByModel);
    this.#imported = new ImportedFiles(path.join(options.config.cache_dir, "imported"), isNamedByModel);
    const { config, hub, resolver, events, logger, clock = systemClock } = options;
    const machineMemory = memoryTotal(options.memory.machine?.().limits);
    const inspect = createGgufInspector();
    const budget = configuredAllowance(config.models.memory_budget, machineMemory);
    const processors = options.processors ?? machineProcessors();
    this.#registry = new ModelRegistry({
      ...options,
      config: allowFolders(config, [this.blobs.folder, this.#imported.folder]),
      state,
      inspect,
    });
    this.slots = new ModelSlots(options, {
      aliasOf: async (name) => (await this.#find(name)).alias,
      acquire: async (name, signal) => await this.acquire(name, signal),
      engineOf: (alias) => this.#pool.model(alias)?.engine,
    });
    this.#pool = new EnginePool({
      ...options,
      prompts: this.slots.folder && new PromptCache(this.slots, this.slots.folder, logger),
      clock,
      budget,
      describe: (loaded) => this.#describe(loaded.plan.record, loaded, undefined),
    });
    this.#planner = new LoadPlanner({
      ...options,
      inspect,
      machineMemory,
      memoryBudget: budget.bytes,
      reservations: this.#pool.memory,
      processors,
    });
    this.#quantizer = new ModelQuantizer({
      registry: this.#registry,
      blobs: this.blobs,
      quantizeTensors: options.quantizeTensors,
      processors: processors.usable,
      check: this.#checkDefinition,
      ...(options.measureSpace && { measureSpace: options.measureSpace }),
    });
    this.#pulls = new Pulls({ hub, resolver, models: this.#registry.hub, events });
    const configured = config.models.default;
    this.#default = new DefaultModel({ registry: this.#registry, state, configured, logger });
  }

  get defaultAlias(): string | undefined {
    return this.#default.alias;
  }

  get downloads(): readonly Download[] {
    return this.#pulls.downloads;
  }

  async list(): Promise<readonly Model[]> {
    const onDisk = await this.#registry.list();
    const names = new Set(onDisk.map(({ alias }) => alias));
    // Loaded models are listed even if their files have been deleted.
    const running = this.#pool.models().map(({ plan }) => plan.record);
    const records = [...onDisk, ...running.filter(({ alias }) => !names.has(alias))];
    // Another daemon with the same cache may have deleted the default model.
    if (!records.some(({ alias }) => alias === this.#default.alias)) await this.#default.refresh();
    return await Promise.all(records.map(async (record) => await this.#describeWithMemory(record)));
  }

  async get(name: string): Promise<Model> {
    return await this.#describeWithMemory(await this.#find(name));
  }

  async setDefault(alias: string): Promise<void> {
    const record = await this.#find(alias);
    await this.#default.choose(record.alias);
  }

  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<Lease> {
    const requestedName = name ?? (await this.#default.require(async (alias) => await this.#exists(alias)));
    // Fast path without disk access: a loaded model under its alias.
    const lease =
      this.#pool.tryLease(requestedName) ?? (await this.#leaseByName(requestedName, signal, residency));
    if (residency?.keepAliveMs !== undefined) lease.setKeepAlive(residency.keepAliveMs);
    return lease;
  }

  /** Leases a model by its name, or by "base:adapter" with one of its adapters. */
  async #leaseByName(name: string, signal: AbortSignal, residency?: Residency): Promise<Lease> {
    const parts = /^(.+):([^:]+)$/.exec(name);
    if (!parts || (await this.#exists(name))) return await this.#loadOnDemand(name, signal, residency);
    const [, base = "", adapter = ""] = parts;
    const record = this.#pool.model(base)?.plan.record ?? (await this.#registry.find(base));
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
    const { auto_load: loadsOnDemand, keep_alive: keepAliveMs } = this.#options.config.models;
    const record = await this.#find(name);
    const { alias } = record;
    await this.#pool.waitForUnload(alias, signal);
    const present = this.#pool.model(alias);
    if (!loadsOnDemand && !residency && !this.#pool.hasCrashed(alias) && present?.state !== "loaded") {
      throw present ? stillLoading(alias, "loaded") : notLoaded(alias);
    }
    const mayEvict = this.#options.isLowPriority?.() ? "unused" : true;
    const overrides = { ...residency, keepAliveMs: residency?.keepAliveMs ?? keepAliveMs, mayEvict } as const;
    return await this.#pool.lease(alias, async () => await this.#planner.plan(record, overrides), signal);
  }

  /** @throws ServiceError model_not_found, or model_loading during its download */
  async #find(name: string): Promise<ModelRecord> {
    const record = this.#pool.model(name)?.plan.record ?? (await this.#registry.find(name));
    if (record) return record;
    if (this.#pulls.isPulling(name)) throw stillLoading(name, "downloaded");
    return await this.#registry.require(name);
  }

  /** True if the name leads to a model; an unusable model counts as missing. */
  async #exists(name: string): Promise<boolean> {
    return await this.#find(name).then(
      () => true,
      () => false,
    );
  }

  async load(options: LoadOptions, signal?: AbortSignal): Promise<Model> {
    if (options.path !== undefined) {
      const name = this.#registry.newName(options.alias);
      if (this.#pool.model(name)?.state === "loaded") throw alreadyLoaded(name);
    }
    const { record, undo } = await this.#registry.recordToLoad(options);
    const { alias } = record;
    const { keepAliveMs = Number.POSITIVE_INFINITY } = options;
    const mayEvict = this.#options.config.models.auto_load;
    try {
      const plan = await this.#planner.plan(record, { ...options, keepAliveMs, mayEvict });
      await this.#pool.load(alias, plan, signal);
    } catch (error) {
      await undo();
      throw error;
    }
    if (options.setDefault) await this.#default.choose(alias);
    else await this.#default.refresh();
    return await this.#describeWithMemory(record);
  }

  async unload(name: string, options: { onlyIdle?: boolean } = {}): Promise<void> {
    const { alias } = await this.#find(name);
    await this.#pool.unload(alias, "request", options);
  }

  async delete(name: string): Promise<DeletedModel> {
    const alias = this.#registry.registeredName(name) ?? (await this.#find(name)).alias;
    if (this.#pulls.isPulling(alias)) {
      throw new ServiceError("model_busy", `The model "${alias}" is being downloaded.`);
    }
    await this.#registry.checkRemovable(alias);
    const deletedError = new ServiceError("model_not_found", `The model "${alias}" has been deleted.`);
    await this.#pool.terminate(alias, deletedError, "deleted");
    const { defined } = this.#registry;
    const [modelfile, files] = [defined.modelfileText(alias), defined.filesOf(alias)];
    const source = await this.#registry.remove(alias);
    if (modelfile !== undefined) {
      await this.blobs.discardNamedIn(modelfile);
      await this.#imported.remove(files);
    }
    await this.slots.folder?.removeAll(alias);
    await this.#default.refresh();
    this.#options.events.emit({ type: "model-deleted", model: alias });
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

  importFrom(request: ImportRequest, signal: AbortSignal): AsyncGenerator<ImportStep, void> {
    const { config } = this.#options;
    const tools = {
      files: this.#imported,
      registry: this.#registry,
      cacheDir: config.cache_dir,
      allowedDirs: config.models.allowed_dirs,
      create: async (alias: string, modelfile: string) => await this.create(alias, modelfile, {}),
    };
    return importModels(request, tools, signal);
  }

  async discard(name: string, signal: AbortSignal): Promise<number> {
    return await this.#pulls.discard(name, signal);
  }

  async fit(sizes: ModelSizes): Promise<ModelFit> {
    return await estimateFit(sizes, this.#planner, this.#pool.memory);
  }

  async create(alias: string, modelfile: string, options: { baseFolder?: string }): Promise<Model> {
    return await this.#announceCreated(
      await this.#registry.create(alias, modelfile, options.baseFolder, this.#checkDefinition),
    );
  }

  async copy(source: string, target: string): Promise<Model> {
    return await this.#announceCreated(
      await this.#registry.copy(await this.#find(source), target, this.#checkDefinition),
    );
  }

  async quantize(
    options: QuantizeOptions,
    onProgress: (progress: QuantizeProgress) => void,
    signal: AbortSignal,
  ): Promise<QuantizedModel> {
    const { record, ...figures } = await this.#quantizer.quantize(options, onProgress, signal);
    return { ...figures, model: await this.#announceCreated(record) };
  }

  async scaleAdapters(name: string, scales: readonly number[]): Promise<void> {
    const { alias } = await this.#find(name);
    const loaded = this.#pool.model(alias);
    if (loaded?.state !== "loaded") throw notLoaded(alias);
    loaded.adapterScales = scales;
  }

  async modelfile(name: string): Promise<string> {
    return this.#registry.print(await this.#find(name));
  }

  async close(): Promise<void> {
    await this.#pool.close();
    this.slots.hashes.close();
  }

  async #describeWithMemory(record: ModelRecord): Promise<Model> {
    const loaded = this.#pool.model(record.alias);
    return this.#describe(record, loaded, await loaded?.engine?.memoryUsage());
  }

  /** @param memoryBytes resident bytes of the engine; undefined where measuring would delay a request */
  #describe(record: ModelRecord, loaded: LoadedModel | undefined, memoryBytes: number | undefined): Model {
    return describeModel(record, {
      loaded,
      memoryBytes,
      isDefault: record.alias === this.#default.alias,
      isPulling: this.#pulls.isPulling(record.alias),
      expected: (each) => this.#planner.expected(each),
    });
  }

  /** Checks that a model can be loaded before its definition is saved. */
  readonly #checkDefinition: CheckDefinition = async (record, { settings: { template } }) => {
    await this.#planner.check(record);
    if (template !== undefined) await this.#options.tryTemplate?.(template);
  };

  async #announceCreated(record: ModelRecord): Promise<Model> {
    this.#options.events.emit({ type: "model-created", model: record.alias });
    return await this.#describeWithMemory(record);
  }
}
