import type { Logger } from "pino";
import type { Config } from "../../config/schema.ts";
import {
  canAffordOwnContexts,
  chooseBatchSize,
  chooseSlots,
  chooseThreads,
} from "../../engine/choose-engine-settings.ts";
import type { Processors } from "../../engine/machine-processors.ts";
import type { Kernels } from "../../engine/prepare-engine.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { checkTemplateLength } from "../../engine/try-template.ts";
import { bytesPerStepToken } from "../../engine/estimate-memory.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import type { VerifyDigest } from "../integrity/verify-digest.ts";
import type { GgufSummary } from "../model.ts";
import { realModelPath, type ModelFile } from "../paths/model-file-path.ts";
import type { ModelRecord } from "../registry/model-record.ts";
import type { LoadRequest, MemoryNeeds } from "./load-request.ts";

/** The engine takes no less; its schema says the same. */
const SMALLEST_CONTEXT = 16;

/** Bytes that an engine with this specification needs at most, of the machine's memory or of the GPU's. */
export type EstimateMemory = (gguf: GgufSummary, spec: EngineSpec) => number;

/**
 * Decides where the layers of a model go.
 * @param wished layers for the GPU as somebody gave them for this load or this model; undefined: nobody did
 * @param taken bytes of the GPU that other models have
 */
export type PlaceLayers = (
  gguf: GgufSummary,
  spec: EngineSpec,
  wished: number | undefined,
  taken: number,
) => Promise<Placed>;

interface Placed {
  readonly spec: EngineSpec;
  readonly warning?: string | undefined;
}

type Place = (spec: EngineSpec) => Promise<Placed>;

export interface LoadPlannerOptions {
  readonly config: Pick<Config, "models" | "engine">;
  readonly inspect: InspectGguf;
  readonly verifyDigest: VerifyDigest;
  readonly estimateMemory: EstimateMemory;
  /** The same for the GPU's memory. */
  readonly estimateGpuMemory: EstimateMemory;
  /** Bytes that the heap of such an engine may grow to; absent: as far as it can. */
  readonly heapLimit?: EstimateMemory | undefined;
  readonly placeLayers: PlaceLayers;
  /** Bytes of the GPU that other models have, less those of idle ones where they may be unloaded. */
  readonly takenOnGpu: (alias: string, mayEvict: boolean) => number;
  /** Logical processors of the machine. */
  readonly processors: Processors;
  /** Bytes of memory of the machine. */
  readonly machineMemory: number;
  /** Bytes that all engines together may use. */
  readonly memoryBudget: number;
  /** Which code multiplies matrices: the faster, the more of a prompt is done in one step. */
  readonly kernels: Kernels;
  readonly logger: Pick<Logger, "warn">;
}

/** What the caller of a load may decide; the rest comes from the model and the configuration. */
export interface LoadWishes {
  readonly contextSize: number | undefined;
  readonly gpuLayers: number | undefined;
  readonly keepAliveMs: number;
  readonly mayEvict: boolean;
}

/** Turns a model on disk into the exact engine to start. */
export class LoadPlanner {
  readonly #options: LoadPlannerOptions;

  constructor(options: LoadPlannerOptions) {
    this.#options = options;
  }

  /** Throws when a file of the model is missing, not allowed, not what it should be, or has another digest. */
  async plan(record: ModelRecord, wishes: LoadWishes): Promise<LoadRequest> {
    return await this.#plan(record, wishes, () => this.#options.takenOnGpu(record.alias, wishes.mayEvict));
  }

  /** Throws what loading the model by itself would throw, whatever else is loaded. */
  async check(record: ModelRecord): Promise<void> {
    const wishes = { contextSize: undefined, gpuLayers: undefined, keepAliveMs: 0, mayEvict: false };
    await this.#plan(record, wishes, () => 0);
  }

  async #plan(record: ModelRecord, wishes: LoadWishes, takenOnGpu: () => number): Promise<LoadRequest> {
    const { config, verifyDigest, estimateMemory, estimateGpuMemory, heapLimit, processors, logger } =
      this.#options;
    const { gguf, settings } = record;
    checkTemplateLength(settings.template ?? gguf.chatTemplate);
    const modelFiles = await Promise.all(record.files.map(realModelPath));
    if (record.digest !== undefined) await verifyDigest(modelFiles, record.digest);
    const projectorFile = record.projector && (await this.#auxiliary(record.projector, "projector"));
    const adapters = record.adapters.map(async ({ file, scale }) => ({
      path: await this.#auxiliary(file, "adapter"),
      scale,
    }));
    const contextSize = this.contextSize(record, wishes.contextSize);
    const threads = config.engine.threads > 0 ? config.engine.threads : chooseThreads(processors);
    const slots = this.#slots(gguf, threads);
    const wished: EngineSpec = {
      modelFiles,
      ...(projectorFile === undefined ? {} : { projectorFile }),
      adapters: await Promise.all(adapters),
      purpose: gguf.purpose,
      contextSize,
      sharedContext: true,
      gpuLayers: 0,
      slots,
      threads,
      batchSize: this.#batchSize(gguf, contextSize, threads, slots),
      flashAttention: settings.flashAttention ?? config.engine.flash_attention,
      ...(settings.template === undefined ? {} : { chatTemplate: settings.template }),
      contextShift: false,
    };
    const { spec, warning } = await this.#place(
      gguf,
      wished,
      wishes.gpuLayers ?? settings.gpuLayers,
      takenOnGpu(),
    );
    if (warning !== undefined) logger.warn({ model: record.alias }, warning);
    this.#warnAboutContext(record, contextSize);
    const { keepAliveMs, mayEvict } = wishes;
    const needsOf = (other: EngineSpec): MemoryNeeds => ({
      bytes: estimateMemory(gguf, other),
      gpuBytes: estimateGpuMemory(gguf, other),
    });
    const heapLimitOf = heapLimit && ((other: EngineSpec): number => heapLimit(gguf, other));
    const replan = async (): Promise<LoadRequest> => await this.plan(record, wishes);
    return { record, spec, ...needsOf(spec), needsOf, heapLimitOf, replan, keepAliveMs, mayEvict };
  }

  /**
   * Tokens of context that loading gives: what is asked for, by the caller or by the model's settings, else the
   * configured size, but then not more than the model was trained for.
   */
  contextSize(record: ModelRecord, wished: number | undefined): number {
    const asked = wished ?? record.settings.contextSize;
    if (asked !== undefined) return asked;
    const configured = this.#options.config.models.context_size;
    const trained = record.gguf.contextLength;
    return trained > 0 ? Math.max(SMALLEST_CONTEXT, Math.min(configured, trained)) : configured;
  }

  /** As configured, but for an encoder, which needs a whole text at once. */
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

  /** As configured, but for kernels so slow that several slots would keep a cancel waiting. */
  #slots({ purpose, parameters }: GgufSummary, threads: number): number {
    const { config, kernels } = this.#options;
    const { slots } = config.models;
    return config.engine.batch_size > 0
      ? slots
      : chooseSlots({ purpose, parameters, slots, threads, kernels });
  }

  /** Where the layers go, and whether the slots share a context. */
  async #place(
    gguf: GgufSummary,
    wished: EngineSpec,
    layers: number | undefined,
    taken: number,
  ): Promise<Placed> {
    const { placeLayers } = this.#options;
    const place: Place = async (spec) => await placeLayers(gguf, spec, layers, taken);
    const shared = await place(wished);
    return (await this.#ownContexts(gguf, wished, place, shared)) ?? shared;
  }

  /** The same with a context for each slot, where that costs nothing but a little memory. */
  async #ownContexts(
    gguf: GgufSummary,
    wished: EngineSpec,
    place: Place,
    shared: Placed,
  ): Promise<Placed | undefined> {
    const { machineMemory, memoryBudget, estimateMemory } = this.#options;
    const { kvBytesPerToken } = gguf;
    if (!canAffordOwnContexts({ ...wished, kvBytesPerToken, memory: machineMemory })) return undefined;
    try {
      const own = await place({ ...wished, sharedContext: false });
      const keepsLayers = own.spec.gpuLayers === shared.spec.gpuLayers;
      return keepsLayers && estimateMemory(gguf, own.spec) <= memoryBudget ? own : undefined;
    } catch (error) {
      if (ServiceError.from(error).code === "insufficient_memory") return undefined;
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
