import {
  canAffordContextPerSlot,
  chooseBatchSize,
  chooseSlots,
  chooseThreads,
} from "../../engine/choose-engine-settings.ts";
import { type LoadSettings, mergeLoadSettings, readLoadSettings } from "../../config/load-settings.ts";
import { type EngineSpec, kvBytesPerToken } from "../../engine/protocol/engine-spec.ts";
import { bytesPerStepToken } from "../../engine/estimate-memory.ts";
import type { Processors } from "../../engine/machine-limits.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { GgufSummary } from "../model.ts";
import type { ModelsOptions, OffloadLayers } from "../models-options.ts";
import type { LoadOptions } from "../models.ts";
import type { ModelRecord } from "../registry/model-record.ts";
import {
  checkLoadSettings,
  choosePromptCache,
  type ContextChoice,
  contextChoices,
  isAffordable,
  supportedContext,
} from "./choose-settings.ts";

export interface EnginePlannerOptions extends Pick<ModelsOptions, "config" | "memory" | "kernels"> {
  readonly processors: Processors;
  /** Total bytes of the machine's memory. */
  readonly machineMemory: number;
  /** Bytes that all engines together may use. */
  readonly memoryBudget: number;
}

/**
 * Memory limits for an automatically enlarged context. Batches may take more memory than usual, because smaller batches
 * slow down every prefill; separate contexts of slots may take less, because loading the model has to write them all.
 */
interface CacheLimits {
  readonly stepBytes: number;
  readonly separateContextBytes: number;
}
const LARGER_CONTEXT: CacheLimits = { stepBytes: 384 * 1024 ** 2, separateContextBytes: 512 * 1024 ** 2 };

type OffloadedEngine = Awaited<ReturnType<OffloadLayers>>;

export type ChosenEngine = OffloadedEngine & Pick<ContextChoice, "contextSource">;

type PlannedModel = Pick<ModelRecord, "gguf" | "settings">;

type LoadRequest = Pick<LoadOptions, "load" | "contextSize" | "fallbackContext">;

interface PlanInputs {
  /** Bytes for engines, minus the reservations of other models. */
  readonly freeBytes: number;
  /** Part of the specification that comes from the model's files and settings. */
  readonly filesAndTemplate: Partial<EngineSpec>;
  readonly offload: (spec: EngineSpec) => Promise<OffloadedEngine>;
}

/** Decides on an engine's context, slots, threads and batch size. */
export class EnginePlanner {
  readonly #options: EnginePlannerOptions;

  constructor(options: EnginePlannerOptions) {
    this.#options = options;
  }

  /** Returns the context that a model would get if it were loaded alone and on the CPU. */
  expectedContext(record: PlannedModel): ContextChoice {
    const { memoryBudget } = this.#options;
    const choices = this.#choices(record, {});
    const smallest = choices.at(-1) ?? choices[0];
    const load = this.loadSettings(record);
    const base = this.#bytesOf(record.gguf, load, smallest.contextSize);
    if (base === undefined) return smallest;
    const fits = ({ contextSize }: ContextChoice): boolean =>
      isAffordable(this.#bytesOf(record.gguf, load, contextSize) ?? Infinity, base, memoryBudget);
    return choices.find(fits) ?? smallest;
  }

  /** Merges the load settings of the request, the model and the configuration, in this order of precedence. */
  loadSettings({ gguf, settings }: PlannedModel, requested: LoadSettings = {}): LoadSettings {
    const { batch_size, ...named } = this.#options.config.engine;
    // An encoder needs a batch that holds a full text, so the configured batch size does not apply to it.
    const usesConfiguredBatch = batch_size > 0 && gguf.purpose === "generate";
    const configured = readLoadSettings(usesConfiguredBatch ? { ...named, batch_size } : named);
    return mergeLoadSettings(requested, settings.load, configured);
  }

  #choices(
    { gguf, settings }: PlannedModel,
    { contextSize: requested, fallbackContext: fallback, load }: LoadRequest,
  ): readonly [ContextChoice, ...ContextChoice[]] {
    const configured = this.#options.config.models.context_size;
    const contextLength = supportedContext(gguf, this.loadSettings({ gguf, settings }, load));
    return contextChoices(
      { ...gguf, contextLength },
      { requested, modelfile: settings.contextSize, configured, fallback },
    );
  }

  /** Estimates bytes of memory for an engine on the CPU; undefined: more than any engine can have. */
  #bytesOf(gguf: GgufSummary, load: LoadSettings, contextSize: number): number | undefined {
    try {
      return this.#options.memory.estimate(gguf, this.#cpuSpec(gguf, load, contextSize));
    } catch (error) {
      if (ServiceError.from(error).code === "insufficient_memory") return undefined;
      throw error;
    }
  }

  /**
   * Chooses the engine with the largest context that is affordable and moves no layers off the GPU. `base` is the
   * engine with the smallest context, if there are several.
   * @throws ServiceError insufficient_memory or gpu_unavailable if no engine can hold the model
   */
  async choose(
    { gguf, settings }: PlannedModel,
    request: LoadRequest,
    { freeBytes, filesAndTemplate, offload }: PlanInputs,
  ): Promise<ChosenEngine & { readonly base?: ChosenEngine }> {
    const { memory } = this.#options;
    const load = this.loadSettings({ gguf, settings }, request.load);
    checkLoadSettings(load, gguf);
    const choices = this.#choices({ gguf, settings }, request);
    const plan = async (contextSize: number, limits?: CacheLimits): Promise<OffloadedEngine> =>
      await this.#chooseOffload(
        gguf,
        { ...this.#cpuSpec(gguf, load, contextSize, limits), ...filesAndTemplate },
        limits,
        offload,
      );
    const withPromptCache = <Chosen extends OffloadedEngine>(chosen: Chosen): Chosen =>
      this.#withPromptCache(gguf, chosen, freeBytes);
    const smallest = choices.at(-1) ?? choices[0];
    const base = { ...(await plan(smallest.contextSize)), contextSource: smallest.contextSource };
    if (choices.length === 1) return withPromptCache(base);
    const bytesOf = ({ spec }: OffloadedEngine): number =>
      memory.estimate(gguf, spec) + memory.estimateGpu(gguf, spec);
    const onGpu = memory.estimateGpu(gguf, base.spec);
    for (const { contextSize, contextSource } of choices.slice(0, -1)) {
      try {
        const larger = await plan(contextSize, LARGER_CONTEXT);
        const keepsGpuLayers = larger.spec.gpuLayers === base.spec.gpuLayers;
        // The GPU's part does not count against the machine's memory; it is limited by keeping all layers on the GPU.
        if (keepsGpuLayers && isAffordable(bytesOf(larger), bytesOf(base), freeBytes + onGpu)) {
          return { ...withPromptCache({ ...larger, contextSource }), base: withPromptCache(base) };
        }
      } catch (error) {
        if (ServiceError.from(error).code !== "insufficient_memory") throw error;
      }
    }
    return withPromptCache(base);
  }

  #withPromptCache<Chosen extends OffloadedEngine>(
    gguf: GgufSummary,
    chosen: Chosen,
    freeBytes: number,
  ): Chosen {
    const { config, kernels, memory } = this.#options;
    const { spec } = chosen;
    const promptCacheBytes = choosePromptCache({
      spec,
      kvBytesPerToken: kvBytesPerToken(gguf.kvBytesPerToken, spec),
      kernels,
      configured: config.models.prompt_cache,
      freeBytes: freeBytes - memory.estimate(gguf, spec),
    });
    return promptCacheBytes === undefined ? chosen : { ...chosen, spec: { ...spec, promptCacheBytes } };
  }

  /** Builds the specification from the configuration and the model's size, without files and on the CPU. */
  #cpuSpec(gguf: GgufSummary, load: LoadSettings, contextSize: number, limits?: CacheLimits): EngineSpec {
    const { config, kernels, processors } = this.#options;
    const threads = config.engine.threads > 0 ? config.engine.threads : chooseThreads(processors);
    const { purpose, parameters } = gguf;
    // Fewer slots than configured with kernels so slow that several would delay a cancellation.
    const slots =
      load.batchSize === undefined
        ? chooseSlots({ purpose, parameters, slots: config.models.slots, threads, kernels })
        : config.models.slots;
    const chosenBatch = (): number =>
      chooseBatchSize({
        purpose,
        parameters,
        contextSize,
        slots,
        threads,
        bytesPerStepToken: bytesPerStepToken(gguf, contextSize),
        maxStepBytes: limits?.stepBytes,
        kernels,
      });
    return {
      ...load,
      modelFiles: [],
      adapters: [],
      purpose,
      contextSize,
      sharedContext: true,
      gpuLayers: 0,
      slots,
      threads,
      batchSize: load.batchSize ?? chosenBatch(),
      flashAttention: load.flashAttention ?? "auto",
      contextShift: load.contextShift === true && purpose === "generate",
    };
  }

  /** Decides on the layers on the GPU, and gives each slot a separate context if that takes little memory. */
  async #chooseOffload(
    gguf: GgufSummary,
    requested: EngineSpec,
    limits: CacheLimits | undefined,
    offload: (spec: EngineSpec) => Promise<OffloadedEngine>,
  ): Promise<OffloadedEngine> {
    // A context is only shifted when a single slot fills it, which slots that share it never do.
    const oneSlot = { slots: 1, sharedContext: false };
    const shared = await offload(requested.contextShift ? { ...requested, ...oneSlot } : requested);
    const { machineMemory, memoryBudget, memory } = this.#options;
    const perToken = kvBytesPerToken(gguf.kvBytesPerToken, requested);
    const costs = {
      ...requested,
      kvBytesPerToken: perToken,
      memory: machineMemory,
      maxBytes: limits?.separateContextBytes,
    };
    if (!canAffordContextPerSlot(costs)) return shared;
    try {
      const separate = await offload({ ...requested, sharedContext: false });
      const keepsGpuLayers = separate.spec.gpuLayers === shared.spec.gpuLayers;
      return keepsGpuLayers && memory.estimate(gguf, separate.spec) <= memoryBudget ? separate : shared;
    } catch (error) {
      if (ServiceError.from(error).code === "insufficient_memory") return shared;
      throw error;
    }
  }
}
