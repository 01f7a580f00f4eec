import {
  canAffordOwnContexts,
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
import type { EstimateMemory, ModelsOptions, OffloadLayers } from "../models-options.ts";
import type { ModelRecord } from "../registry/model-record.ts";
import {
  checkLoadSettings,
  choosePromptCache,
  type ContextChoice,
  contextChoices,
  isAffordable,
  reachableContext,
} from "./choose-settings.ts";

export interface EnginePlannerOptions extends Pick<ModelsOptions, "config" | "estimateMemory" | "kernels"> {
  /** GPU memory that an engine needs. */
  readonly estimateGpuMemory: EstimateMemory;
  readonly processors: Processors;
  /** Bytes of memory of the machine. */
  readonly machineMemory: number;
  /** Bytes that all engines together may use. */
  readonly memoryBudget: number;
}

/**
 * Limits for a context that is larger than it has to be: its steps may take more memory, or they would be so short that
 * every prompt is read more slowly; own contexts of the slots less, because all of it is written when the model is loaded.
 */
interface CacheLimits {
  readonly stepBytes: number;
  readonly ownBytes: number;
}
const LARGER_CONTEXT: CacheLimits = { stepBytes: 384 * 1024 ** 2, ownBytes: 512 * 1024 ** 2 };

type Placed = Awaited<ReturnType<OffloadLayers>>;

type ChosenEngine = Placed & Pick<ContextChoice, "source">;

/** What the caller of a load says of the context. */
export interface LoadRequest {
  readonly load?: LoadSettings | undefined;
  readonly contextSize?: number | undefined;
  /** Tokens of context of a model of which nothing else says how many; absent: as many as suit the memory. */
  readonly fallbackContext?: number | undefined;
}

interface Circumstances {
  /** Bytes that engines may use, less what others have. */
  readonly free: number;
  /** What the model's files and settings add to the specification. */
  readonly further: Partial<EngineSpec>;
  readonly place: (spec: EngineSpec) => Promise<Placed>;
}

/** Decides on context, slots, threads and steps of an engine. */
export class EnginePlanner {
  readonly #options: EnginePlannerOptions;

  constructor(options: EnginePlannerOptions) {
    this.#options = options;
  }

  /** The context that a model would be loaded with if it were loaded alone and on the CPU. */
  likelyContext(record: Pick<ModelRecord, "gguf" | "settings">): ContextChoice {
    const { memoryBudget } = this.#options;
    const [first, ...smaller] = this.#choices(record, {});
    const load = this.loadSettings(record);
    const base = this.#bytesOf(record.gguf, load, (smaller.at(-1) ?? first).contextSize);
    if (base === undefined) return smaller.at(-1) ?? first;
    const fits = ({ contextSize }: ContextChoice): boolean =>
      isAffordable(this.#bytesOf(record.gguf, load, contextSize) ?? Infinity, base, memoryBudget);
    return [first, ...smaller].find(fits) ?? smaller.at(-1) ?? first;
  }

  /** What is said of how to load a model: by the caller, by itself and in the configuration. */
  loadSettings(
    { gguf, settings }: Pick<ModelRecord, "gguf" | "settings">,
    wished: LoadSettings = {},
  ): LoadSettings {
    const { batch_size, ...named } = this.#options.config.engine;
    // An encoder needs a whole text at once, whatever suits other models.
    const isSplit = batch_size > 0 && gguf.purpose === "generate";
    const configured = readLoadSettings(isSplit ? { ...named, batch_size } : named);
    return mergeLoadSettings(wished, settings.load, configured);
  }

  #choices(
    { gguf, settings }: Pick<ModelRecord, "gguf" | "settings">,
    { contextSize: asked, fallbackContext: fallback, load: wished }: LoadRequest,
  ): readonly [ContextChoice, ...ContextChoice[]] {
    const configured = this.#options.config.models.context_size;
    const contextLength = reachableContext(gguf, this.loadSettings({ gguf, settings }, wished));
    return contextChoices(
      { ...gguf, contextLength },
      { asked, ofModel: settings.contextSize, configured, fallback },
    );
  }

  /** Bytes of the machine's memory for an engine on the CPU; undefined: no engine can hold it. */
  #bytesOf(gguf: GgufSummary, load: LoadSettings, contextSize: number): number | undefined {
    try {
      return this.#options.estimateMemory(gguf, this.#wishedSpec(gguf, load, contextSize));
    } catch (error) {
      if (ServiceError.from(error).code === "insufficient_memory") return undefined;
      throw error;
    }
  }

  /**
   * The engine with the most context of those that may be chosen: it takes little enough memory, and no layers from the GPU.
   * `base` is the one with the least, where there is a choice.
   * @throws ServiceError insufficient_memory or gpu_unavailable if no engine can have the model
   */
  async choose(
    { gguf, settings }: Pick<ModelRecord, "gguf" | "settings">,
    wishes: LoadRequest,
    { free, further, place: placeLayers }: Circumstances,
  ): Promise<ChosenEngine & { readonly base?: ChosenEngine }> {
    const { estimateMemory, estimateGpuMemory } = this.#options;
    const load = this.loadSettings({ gguf, settings }, wishes.load);
    checkLoadSettings(load, gguf);
    const [first, ...smaller] = this.#choices({ gguf, settings }, wishes);
    const place = async (contextSize: number, limits?: CacheLimits): Promise<Placed> =>
      await this.#choosePlace(
        gguf,
        { ...this.#wishedSpec(gguf, load, contextSize, limits), ...further },
        limits,
        placeLayers,
      );
    const whole = <Chosen extends Placed>(chosen: Chosen): Chosen =>
      this.#withPromptCache(gguf, chosen, free);
    const last = smaller.at(-1) ?? first;
    const base = { ...(await place(last.contextSize)), source: last.source };
    if (smaller.length === 0) return whole(base);
    const bytesOf = ({ spec }: Placed): number => estimateMemory(gguf, spec) + estimateGpuMemory(gguf, spec);
    const onGpu = estimateGpuMemory(gguf, base.spec);
    for (const { contextSize, source } of [first, ...smaller.slice(0, -1)]) {
      try {
        const larger = await place(contextSize, LARGER_CONTEXT);
        const keepsLayers = larger.spec.gpuLayers === base.spec.gpuLayers;
        // What the GPU holds is not taken from the machine's memory; its own limit is that no layer is lost.
        if (keepsLayers && isAffordable(bytesOf(larger), bytesOf(base), free + onGpu)) {
          return { ...whole({ ...larger, source }), base: whole(base) };
        }
      } catch (error) {
        if (ServiceError.from(error).code !== "insufficient_memory") throw error;
      }
    }
    return whole(base);
  }

  /** Adds room for prompts that no slot holds any more. */
  #withPromptCache<Chosen extends Placed>(gguf: GgufSummary, chosen: Chosen, free: number): Chosen {
    const { config, kernels, estimateMemory } = this.#options;
    const { spec } = chosen;
    const promptCacheBytes = choosePromptCache({
      spec,
      kvBytesPerToken: kvBytesPerToken(gguf.kvBytesPerToken, spec),
      kernels,
      configured: config.models.prompt_cache,
      freeBytes: free - estimateMemory(gguf, spec),
    });
    return promptCacheBytes === undefined ? chosen : { ...chosen, spec: { ...spec, promptCacheBytes } };
  }

  /** The engine as the configuration and the model's size make it, without files and on the CPU. */
  #wishedSpec(gguf: GgufSummary, load: LoadSettings, contextSize: number, limits?: CacheLimits): EngineSpec {
    const { config, processors } = this.#options;
    const threads = config.engine.threads > 0 ? config.engine.threads : chooseThreads(processors);
    const slots = this.#slots(gguf, load, threads);
    return {
      ...load,
      modelFiles: [],
      adapters: [],
      purpose: gguf.purpose,
      contextSize,
      sharedContext: true,
      gpuLayers: 0,
      slots,
      threads,
      batchSize: load.batchSize ?? this.#batchSize(gguf, contextSize, threads, slots, limits),
      flashAttention: load.flashAttention ?? "auto",
      contextShift: load.contextShift === true && gguf.purpose === "generate",
    };
  }

  #batchSize(
    gguf: GgufSummary,
    contextSize: number,
    threads: number,
    slots: number,
    limits: CacheLimits | undefined,
  ): number {
    const { purpose, parameters } = gguf;
    const { kernels } = this.#options;
    return chooseBatchSize({
      purpose,
      parameters,
      contextSize,
      slots,
      threads,
      bytesPerStepToken: bytesPerStepToken(gguf, contextSize),
      mostStepBytes: limits?.stepBytes,
      kernels,
    });
  }

  /** As configured, except for kernels so slow that several slots would delay a cancel. */
  #slots({ purpose, parameters }: GgufSummary, { batchSize }: LoadSettings, threads: number): number {
    const { config, kernels } = this.#options;
    const { slots } = config.models;
    return batchSize !== undefined ? slots : chooseSlots({ purpose, parameters, slots, threads, kernels });
  }

  /** Decides where the layers go, and gives each slot its own context if that takes little memory. */
  async #choosePlace(
    gguf: GgufSummary,
    wished: EngineSpec,
    limits: CacheLimits | undefined,
    place: (spec: EngineSpec) => Promise<Placed>,
  ): Promise<Placed> {
    // Slots that share a context are full long before each has used all of it, and only a full one is shifted.
    const alone = { slots: 1, sharedContext: false };
    const shared = await place(wished.contextShift ? { ...wished, ...alone } : wished);
    const { machineMemory, memoryBudget, estimateMemory } = this.#options;
    const perToken = kvBytesPerToken(gguf.kvBytesPerToken, wished);
    const question = {
      ...wished,
      kvBytesPerToken: perToken,
      memory: machineMemory,
      mostBytes: limits?.ownBytes,
    };
    if (!canAffordOwnContexts(question)) return shared;
    try {
      const own = await place({ ...wished, sharedContext: false });
      const keepsLayers = own.spec.gpuLayers === shared.spec.gpuLayers;
      return keepsLayers && estimateMemory(gguf, own.spec) <= memoryBudget ? own : shared;
    } catch (error) {
      if (ServiceError.from(error).code === "insufficient_memory") return shared;
      throw error;
    }
  }
}
