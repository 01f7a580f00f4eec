import {
  canAffordOwnContexts,
  chooseBatchSize,
  chooseSlots,
  chooseThreads,
} from "../../engine/choose-engine-settings.ts";
import type { Processors } from "../../engine/machine-processors.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { checkTemplateLength } from "../../engine/try-template.ts";
import { bytesPerStepToken } from "../../engine/estimate-memory.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import { type GgufSummary, NO_SETTINGS, type Residency } from "../model.ts";
import type { EstimateMemory, ModelsOptions, PlaceLayers } from "../models-options.ts";
import { realModelPath, type ModelFile } from "../registry/model-file.ts";
import type { ModelRecord } from "../registry/model-record.ts";
import { createDigestVerifier } from "./verify-digest.ts";

/** The minimum of an engine, as in its schema. */
const SMALLEST_CONTEXT = 16;

/** Memory that engines use, or may use. */
export interface MemoryNeeds {
  /** Bytes of the machine's memory. */
  readonly bytes: number;
  /** Bytes of the GPU's. */
  readonly gpuBytes: number;
}

/** How to load a model; everything has been looked up and checked. */
export interface LoadPlan extends MemoryNeeds {
  readonly record: ModelRecord;
  readonly spec: EngineSpec;
  /**
   * What the engine would need with another specification.
   * @throws ServiceError insufficient_memory if it exceeds any engine's limit
   */
  readonly needsOf: (spec: EngineSpec) => MemoryNeeds;
  /** Maximum heap in bytes of an engine with this specification; absent: no limit of its own. */
  readonly heapLimitOf?: ((spec: EngineSpec) => number) | undefined;
  /** Plans the same load again, after other models have been loaded. */
  readonly replan: () => Promise<LoadPlan>;
  /** Milliseconds of idleness after which it is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  /** Idle models may be unloaded to make room. */
  readonly mayEvict: boolean;
}

/** The caller's choices for a load; the rest comes from the model and the configuration. */
interface Overrides extends Residency {
  readonly keepAliveMs: number;
  readonly mayEvict: boolean;
}

interface LoadPlannerOptions extends Pick<
  ModelsOptions,
  "config" | "estimateMemory" | "heapLimit" | "placeLayers" | "kernels" | "logger"
> {
  readonly inspect: InspectGguf;
  /** GPU memory that an engine needs. */
  readonly estimateGpuMemory: EstimateMemory;
  /** Bytes of GPU memory that other models use, without idle ones if those may be unloaded. */
  readonly takenOnGpu: (alias: string, mayEvict: boolean) => number;
  readonly processors: Processors;
  /** Bytes of memory of the machine. */
  readonly machineMemory: number;
  /** Bytes that all engines together may use. */
  readonly memoryBudget: number;
}

type Placed = Awaited<ReturnType<PlaceLayers>>;

/** Decides on the exact engine to start for a model on disk. */
export class LoadPlanner {
  readonly #options: LoadPlannerOptions;
  readonly #verifyDigest = createDigestVerifier();

  constructor(options: LoadPlannerOptions) {
    this.#options = options;
  }

  /** Throws if one of the model's files is missing, not allowed, of the wrong kind, or has a wrong digest. */
  async plan(record: ModelRecord, overrides: Overrides): Promise<LoadPlan> {
    const takenOnGpu = (): number => this.#options.takenOnGpu(record.alias, overrides.mayEvict);
    return await this.#plan(record, overrides, takenOnGpu);
  }

  /** Throws what loading the model would throw if nothing else were loaded. */
  async check(record: ModelRecord): Promise<void> {
    await this.#plan(record, { keepAliveMs: 0, mayEvict: false }, () => 0);
  }

  /**
   * How a model with such a header would be loaded if nothing else were; none of it has to be on disk.
   * @throws ServiceError insufficient_memory or gpu_unavailable if no engine can have it
   */
  async estimate(gguf: GgufSummary): Promise<MemoryNeeds & { readonly spec: EngineSpec }> {
    const { estimateMemory, estimateGpuMemory, placeLayers } = this.#options;
    const contextSize = this.contextSize({ gguf, settings: NO_SETTINGS }, undefined);
    const { spec } = await this.#choosePlace(
      gguf,
      this.#wishedSpec(gguf, contextSize),
      async (each) => await placeLayers(gguf, each, undefined, 0),
    );
    return { spec, bytes: estimateMemory(gguf, spec), gpuBytes: estimateGpuMemory(gguf, spec) };
  }

  async #plan(record: ModelRecord, overrides: Overrides, takenOnGpu: () => number): Promise<LoadPlan> {
    const { estimateMemory, estimateGpuMemory, heapLimit, logger } = this.#options;
    const { gguf, settings } = record;
    checkTemplateLength(settings.template ?? gguf.chatTemplate);
    const modelFiles = await Promise.all(record.files.map(realModelPath));
    if (record.digest !== undefined) await this.#verifyDigest(modelFiles, record.digest);
    const projectorFile = record.projector && (await this.#auxiliary(record.projector, "projector"));
    const adapters = record.adapters.map(async ({ file, scale }) => ({
      path: await this.#auxiliary(file, "adapter"),
      scale,
    }));
    const contextSize = this.contextSize(record, overrides.contextSize);
    const wished: EngineSpec = {
      ...this.#wishedSpec(gguf, contextSize),
      modelFiles,
      ...(projectorFile === undefined ? {} : { projectorFile }),
      adapters: await Promise.all(adapters),
      ...(settings.flashAttention && { flashAttention: settings.flashAttention }),
      ...(settings.template === undefined ? {} : { chatTemplate: settings.template }),
    };
    const layers = overrides.gpuLayers ?? settings.gpuLayers;
    const taken = takenOnGpu();
    const { spec, warning } = await this.#choosePlace(
      gguf,
      wished,
      async (each) => await this.#options.placeLayers(gguf, each, layers, taken),
    );
    if (warning !== undefined) logger.warn({ model: record.alias }, warning);
    this.#warnAboutContext(record, contextSize);
    const { keepAliveMs, mayEvict } = overrides;
    const needsOf = (other: EngineSpec): MemoryNeeds => ({
      bytes: estimateMemory(gguf, other),
      gpuBytes: estimateGpuMemory(gguf, other),
    });
    const heapLimitOf = heapLimit && ((other: EngineSpec): number => heapLimit(gguf, other));
    const replan = async (): Promise<LoadPlan> => await this.plan(record, overrides);
    return { record, spec, ...needsOf(spec), needsOf, heapLimitOf, replan, keepAliveMs, mayEvict };
  }

  /**
   * Tokens of context to load with: as requested by the caller or by the model's settings, or else the configured size,
   * but not more than the model was trained for.
   */
  contextSize(record: Pick<ModelRecord, "gguf" | "settings">, wished: number | undefined): number {
    const asked = wished ?? record.settings.contextSize;
    if (asked !== undefined) return asked;
    const configured = this.#options.config.models.context_size;
    const trained = record.gguf.contextLength;
    return trained > 0 ? Math.max(SMALLEST_CONTEXT, Math.min(configured, trained)) : configured;
  }

  /** The engine as the configuration and the model's size make it, without files and on the CPU. */
  #wishedSpec(gguf: GgufSummary, contextSize: number): EngineSpec {
    const { config, processors } = this.#options;
    const threads = config.engine.threads > 0 ? config.engine.threads : chooseThreads(processors);
    const slots = this.#slots(gguf, threads);
    return {
      modelFiles: [],
      adapters: [],
      purpose: gguf.purpose,
      contextSize,
      sharedContext: true,
      gpuLayers: 0,
      slots,
      threads,
      batchSize: this.#batchSize(gguf, contextSize, threads, slots),
      flashAttention: config.engine.flash_attention,
      contextShift: false,
    };
  }

  /** As configured, except for an encoder, which needs a whole text at once. */
  #batchSize(gguf: GgufSummary, contextSize: number, threads: number, slots: number): number {
    const { purpose, parameters } = gguf;
    const { config, kernels } = this.#options;
    const { batch_size: configured } = config.engine;
    if (configured > 0 && purpose === "generate") return configured;
    return chooseBatchSize({
      purpose,
      parameters,
      contextSize,
      slots,
      threads,
      bytesPerStepToken: bytesPerStepToken(gguf, contextSize),
      kernels,
    });
  }

  /** As configured, except for kernels so slow that several slots would delay a cancel. */
  #slots({ purpose, parameters }: GgufSummary, threads: number): number {
    const { config, kernels } = this.#options;
    const { slots } = config.models;
    return config.engine.batch_size > 0
      ? slots
      : chooseSlots({ purpose, parameters, slots, threads, kernels });
  }

  /** Decides where the layers go, and gives each slot its own context if that takes little memory. */
  async #choosePlace(
    gguf: GgufSummary,
    wished: EngineSpec,
    place: (spec: EngineSpec) => Promise<Placed>,
  ): Promise<Placed> {
    const shared = await place(wished);
    const { machineMemory, memoryBudget, estimateMemory } = this.#options;
    const { kvBytesPerToken } = gguf;
    if (!canAffordOwnContexts({ ...wished, kvBytesPerToken, memory: machineMemory })) return shared;
    try {
      const own = await place({ ...wished, sharedContext: false });
      const keepsLayers = own.spec.gpuLayers === shared.spec.gpuLayers;
      return keepsLayers && estimateMemory(gguf, own.spec) <= memoryBudget ? own : shared;
    } catch (error) {
      if (ServiceError.from(error).code === "insufficient_memory") return shared;
      throw error;
    }
  }

  #warnAboutContext({ alias, gguf }: ModelRecord, contextSize: number): void {
    if (gguf.contextLength === 0 || contextSize <= gguf.contextLength) return;
    this.#options.logger.warn(
      { model: alias, contextSize, trainedContextSize: gguf.contextLength },
      "The context is larger than the model was trained for; far into it, its answers may make no sense",
    );
  }

  async #auxiliary(file: ModelFile, kind: NonNullable<GgufSummary["auxiliary"]>): Promise<string> {
    const real = await realModelPath(file);
    const { auxiliary } = await this.#options.inspect([real]);
    if (auxiliary === kind) return real;
    throw new ServiceError("invalid_model_file", `${file.path} is not a ${kind}.`);
  }
}
