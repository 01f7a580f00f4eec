import { machineProcessors } from "../engine/machine-processors.ts";
import { memoryTotal } from "../machine/memory-limits.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import { DefaultModel } from "./default-model.ts";
import { DefinitionEditor } from "./definition-editor.ts";
import { createGgufInspector } from "./gguf/inspect-gguf.ts";
import { createDigestVerifier } from "./integrity/verify-digest.ts";
import { systemClock } from "./loading/clock.ts";
import { engineBudget } from "./loading/engine-budget.ts";
import { EnginePool } from "./loading/engine-pool.ts";
import { LoadPlanner } from "./loading/load-planner.ts";
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
import { ModelFinder } from "./model-finder.ts";
import { ModelLender } from "./model-lender.ts";
import { ModelViews } from "./model-views.ts";
import type { ModelsOptions } from "./models-options.ts";
import { Pulls } from "./pulls.ts";
import { recordToLoad } from "./record-to-load.ts";
import { ModelRegistry } from "./registry/model-registry.ts";
import { StateFile } from "./state/state-file.ts";

/** Makes the {@link Models} of a daemon: reads the saved state and looks at what is on disk, loads nothing. */
export async function createModelsService(options: ModelsOptions): Promise<Models> {
  const state = await StateFile.open(options.config.cache_dir, options.logger);
  const service = new ModelsService(options, state);
  await service.refreshDefault();
  return service;
}

class ModelsService implements Models {
  readonly #autoLoad: boolean;
  readonly #registry: ModelRegistry;
  readonly #pool: EnginePool;
  readonly #planner: LoadPlanner;
  readonly #pulls: Pulls;
  readonly #default: DefaultModel;
  readonly #definitions: DefinitionEditor;
  readonly #finder: ModelFinder;
  readonly #views: ModelViews;
  readonly #lender: ModelLender;
  readonly #events: Pick<ServiceEvents, "emit">;

  constructor(options: ModelsOptions, state: StateFile) {
    const { config, hub, resolver, events, logger, readModelfile } = options;
    const { clock = systemClock, processors = machineProcessors() } = options;
    const machineMemory = memoryTotal(options.machineMemory?.().limits);
    const gpuMemory = options.gpuMemory ?? { budget: () => Number.POSITIVE_INFINITY, estimate: () => 0 };
    const inspect = createGgufInspector();
    const verifyDigest = createDigestVerifier();
    this.#autoLoad = config.models.auto_load;
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
    const budget = engineBudget(config.models.memory_budget, machineMemory);
    this.#pool = new EnginePool({
      startEngine: options.startEngine,
      events,
      clock,
      budget,
      machineMemory: options.machineMemory,
      gpuBudget: gpuMemory.budget,
    });
    this.#planner = new LoadPlanner({
      config,
      inspect,
      verifyDigest,
      estimateMemory: options.estimateMemory,
      estimateGpuMemory: gpuMemory.estimate,
      heapLimit: options.heapLimit,
      placeLayers: options.placeLayers,
      takenOnGpu: (alias, mayEvict) => this.#pool.memory.takenOnGpu(alias, mayEvict),
      processors,
      machineMemory,
      memoryBudget: budget.bytes,
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
    const shared = {
      registry: this.#registry,
      pool: this.#pool,
      planner: this.#planner,
      pulls: this.#pulls,
      defaultModel: this.#default,
    };
    this.#finder = new ModelFinder(shared);
    this.#views = new ModelViews(shared);
    this.#lender = new ModelLender({
      ...shared,
      finder: this.#finder,
      views: this.#views,
      autoLoad: config.models.auto_load,
      keepAliveMs: config.models.keep_alive,
    });
    this.#definitions = new DefinitionEditor({
      registry: this.#registry,
      planner: this.#planner,
      readModelfile,
      printModelfile: options.printModelfile,
      tryTemplate: options.tryTemplate,
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
    const records = await this.#finder.list();
    // Another daemon that shares the cache may have deleted it.
    if (!records.some(({ alias }) => alias === this.#default.alias)) await this.#default.refresh();
    return await Promise.all(records.map(async (record) => await this.#views.show(record)));
  }

  async get(name: string): Promise<Model> {
    return await this.#views.show(await this.#finder.require(name));
  }

  async setDefault(alias: string): Promise<void> {
    const record = await this.#finder.require(alias);
    await this.#default.choose(record.alias);
  }

  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease> {
    return await this.#lender.acquire(name, signal, residency);
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
    return await this.#views.show(record);
  }

  async unload(name: string, options: { onlyIdle?: boolean } = {}): Promise<void> {
    const { alias } = await this.#finder.require(name);
    await this.#pool.unload(alias, "request", options);
  }

  async delete(name: string): Promise<DeletedModel> {
    const alias = this.#registry.ownName(name) ?? (await this.#finder.require(name)).alias;
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
    return await this.#views.show(await this.#definitions.create(alias, modelfile, options.baseFolder));
  }

  async copy(source: string, target: string): Promise<Model> {
    return await this.#views.show(await this.#definitions.copy(await this.#finder.require(source), target));
  }

  async modelfile(name: string): Promise<string> {
    return this.#definitions.print(await this.#finder.require(name));
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
