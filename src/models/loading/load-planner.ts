import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { checkTemplateLength } from "../../engine/try-template.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { type InspectGguf, rememberByFiles } from "../gguf/inspect-gguf.ts";
import { type ContextSource, type GgufSummary, type Model, NO_SETTINGS, type Speculation } from "../model.ts";
import type { ModelsOptions } from "../models-options.ts";
import type { LoadOptions, Residency } from "../models.ts";
import { type ModelFile, type ModelRecord, realModelPath } from "../registry/model-record.ts";
import { supportedContext } from "./choose-settings.ts";
import { type ChosenEngine, EnginePlanner, type EnginePlannerOptions } from "./engine-planner.ts";

/**
 * Models that a load may evict: all idle ones (true), none (false), or those that have been idle for a while (unused).
 */
export type EvictionPolicy = boolean | "unused";

export interface MemoryNeeds {
  /** Bytes of the machine's memory. */
  readonly bytes: number;
  /** Bytes of GPU memory. */
  readonly gpuBytes: number;
}

export interface LoadPlan extends MemoryNeeds {
  readonly record: ModelRecord;
  readonly spec: EngineSpec;
  readonly contextSource: ContextSource;
  /** Speculative decoding; undefined: off by default. */
  readonly speculation?: Speculation | undefined;
  /**
   * Estimates the memory with another specification.
   * @throws ServiceError insufficient_memory if it exceeds the limit of any engine
   */
  readonly needsOf: (spec: EngineSpec) => MemoryNeeds;
  /** Returns the maximum bytes of an engine's WebAssembly memory; absent: no separate limit. */
  readonly heapLimitOf?: ((spec: EngineSpec) => number) | undefined;
  /** The same plan with a smaller context, if a larger one was chosen automatically. */
  readonly smallerContextPlan?: LoadPlan | undefined;
  /** Plans the load again, after other models have taken memory. */
  readonly replan: () => Promise<LoadPlan>;
  /** Milliseconds of idleness after which it is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  readonly mayEvict: EvictionPolicy;
}

/** Settings of a load request; absent ones come from the model and the configuration. */
interface Overrides extends Residency, Pick<LoadOptions, "fallbackContext" | "speculation"> {
  readonly keepAliveMs: number;
  readonly mayEvict: EvictionPolicy;
}

interface LoadPlannerOptions extends EnginePlannerOptions, Pick<ModelsOptions, "logger"> {
  readonly inspect: InspectGguf;
  /** Memory of other models, in bytes; those that may be evicted do not count. */
  readonly reservations: {
    takenOnGpu(alias: string, mayEvict: EvictionPolicy): number;
    free(alias: string, mayEvict: EvictionPolicy): number;
  };
}

/** Maximum drafted tokens per step: longer drafts gain little, and cost much if they are rejected. */
const MAX_DRAFT_TOKENS = 16;

/** Difference in vocabulary size that llama.cpp allows for a draft model: unused tokens at the end. */
const MAX_VOCABULARY_DIFFERENCE = 128;

/** Kinds of GGUF files, for error messages. */
const FILE_KINDS: Readonly<Record<NonNullable<GgufSummary["auxiliary"]> | GgufSummary["purpose"], string>> = {
  adapter: "an adapter",
  projector: "a projector",
  generate: "a model that generates text",
  embed: "an embedding model",
  rerank: "a reranker model",
};

/** Plans the engine of a model on disk. */
export class LoadPlanner {
  readonly #options: LoadPlannerOptions;
  readonly engines: EnginePlanner;
  /** SHA-256 of files, concatenated in their order. */
  readonly #hashOf = rememberByFiles(hash, () => false);

  constructor(options: LoadPlannerOptions) {
    this.#options = options;
    this.engines = new EnginePlanner(options);
  }

  /**
   * Plans a load. Throws if one of the model's files is missing, not allowed, of the wrong kind or has a wrong digest.
   */
  async plan(record: ModelRecord, overrides: Overrides): Promise<LoadPlan> {
    const { reservations } = this.#options;
    const { alias } = record;
    const { mayEvict } = overrides;
    const freeBytes = reservations.free(alias, mayEvict);
    return await this.#plan(record, overrides, freeBytes, reservations.takenOnGpu(alias, mayEvict));
  }

  /** Throws the errors of loading the model while no other model is loaded. */
  async check(record: ModelRecord): Promise<void> {
    await this.#plan(record, { keepAliveMs: 0, mayEvict: false }, this.#options.memoryBudget, 0);
  }

  /**
   * Plans the engine of a model that need not be on disk, while no other model is loaded.
   * @throws ServiceError insufficient_memory or gpu_unavailable if no engine can hold it
   */
  async estimate(gguf: GgufSummary): Promise<MemoryNeeds & { readonly spec: EngineSpec }> {
    const { memory, memoryBudget } = this.#options;
    const inputs = {
      freeBytes: memoryBudget,
      filesAndTemplate: {},
      offload: async (each: EngineSpec) => await memory.offloadLayers(gguf, each, undefined, 0),
    };
    const { spec } = await this.engines.choose({ gguf, settings: NO_SETTINGS }, {}, inputs);
    return { spec, ...this.#needsOf(gguf, spec) };
  }

  #needsOf(gguf: GgufSummary, spec: EngineSpec): MemoryNeeds {
    const { memory } = this.#options;
    return { bytes: memory.estimate(gguf, spec), gpuBytes: memory.estimateGpu(gguf, spec) };
  }

  /** Settings that a model would be loaded with, for its description. */
  expected(
    record: ModelRecord,
  ): Pick<Model, "contextSize" | "contextSource" | "loadSettings" | "speculation"> {
    return {
      ...this.engines.expectedContext(record),
      loadSettings: this.engines.loadSettings(record),
      speculation: this.speculation(record),
    };
  }

  async #plan(
    record: ModelRecord,
    overrides: Overrides,
    freeBytes: number,
    takenOnGpu: number,
  ): Promise<LoadPlan> {
    const { memory, logger } = this.#options;
    const { gguf, settings } = record;
    checkTemplateLength(settings.template ?? gguf.chatTemplate);
    const modelFiles = await Promise.all(record.files.map(realModelPath));
    if (record.digest !== undefined) await this.#verifyDigest(modelFiles, record.digest);
    const projectorFile = record.projector && (await this.#auxiliary(record.projector, "projector"));
    const adapters = record.adapters.map(async ({ file, scale }) => ({
      path: await this.#auxiliary(file, "adapter"),
      scale,
    }));
    const layers = overrides.gpuLayers ?? settings.gpuLayers;
    const speculation = this.speculation(record, overrides.speculation);
    const chosen = await this.engines.choose(record, overrides, {
      freeBytes,
      filesAndTemplate: {
        modelFiles,
        ...(projectorFile === undefined ? {} : { projectorFile }),
        ...(record.projector?.media.audio && { hearsAudio: true }),
        adapters: await Promise.all(adapters),
        ...(settings.template === undefined ? {} : { chatTemplate: settings.template }),
        ...(await this.#speculationSpec(record, speculation)),
      },
      offload: async (each) => await memory.offloadLayers(gguf, each, layers, takenOnGpu),
    });
    if (chosen.warning !== undefined) logger.warn({ model: record.alias }, chosen.warning);
    this.#warnAboutContext(record, chosen.spec);
    const { keepAliveMs, mayEvict } = overrides;
    const needsOf = (other: EngineSpec): MemoryNeeds => this.#needsOf(gguf, other);
    const { heapLimit } = memory;
    const heapLimitOf = heapLimit && ((other: EngineSpec): number => heapLimit(gguf, other));
    const replan = async (): Promise<LoadPlan> => await this.plan(record, overrides);
    const common = { record, speculation, needsOf, heapLimitOf, replan, keepAliveMs, mayEvict };
    const planOf = ({ spec, contextSource }: ChosenEngine): LoadPlan => ({
      ...common,
      ...needsOf(spec),
      spec,
      contextSource,
    });
    return { ...planOf(chosen), ...(chosen.base && { smallerContextPlan: planOf(chosen.base) }) };
  }

  /**
   * Returns the speculative decoding of a model: as in the request, the model's settings or the configuration.
   * @returns undefined for "auto" without a draft model, and for models that do not generate
   */
  speculation({ gguf, draft, settings }: ModelRecord, requested?: Speculation): Speculation | undefined {
    if (gguf.purpose !== "generate") return undefined;
    const choice = requested ?? settings.speculation ?? this.#options.config.models.speculation;
    return choice === "auto" && !draft ? undefined : choice;
  }

  #warnAboutContext({ alias, gguf }: ModelRecord, spec: EngineSpec): void {
    const { contextSize } = spec;
    const supported = supportedContext(gguf, spec);
    if (supported === 0 || contextSize <= supported) return;
    this.#options.logger.warn(
      { model: alias, contextSize, trainedContextSize: gguf.contextLength },
      "The context is larger than the model was trained for; far into it, its answers may make no sense",
    );
  }

  /** Returns the part of the specification for speculative decoding, and checks the draft model. */
  async #speculationSpec(
    { gguf, draft, alias }: ModelRecord,
    speculation: Speculation | undefined,
  ): Promise<Pick<EngineSpec, "draft" | "guessTokens">> {
    if (speculation === undefined || speculation === "off") return {};
    if (!draft) return { guessTokens: MAX_DRAFT_TOKENS };
    const path = await realModelPath(draft);
    const { auxiliary, purpose, vocabSize, kvBytesPerToken } = await this.#options.inspect([path]);
    if (auxiliary || purpose !== "generate")
      throw new ServiceError("invalid_model_file", `${draft.path} is not a model that generates text.`);
    if (Math.abs(vocabSize - gguf.vocabSize) > MAX_VOCABULARY_DIFFERENCE)
      throw new ServiceError(
        "invalid_model_file",
        `${draft.path} has ${vocabSize} tokens and ${alias} has ${gguf.vocabSize}; a draft model needs the same tokens, so choose a small model of the same family.`,
      );
    return { draft: { path, kvBytesPerToken }, guessTokens: MAX_DRAFT_TOKENS };
  }

  /** @throws ServiceError checksum_mismatch */
  async #verifyDigest(files: readonly string[], digest: string): Promise<void> {
    const actual = await this.#hashOf(files);
    if (actual === digest) return;
    throw new ServiceError(
      "checksum_mismatch",
      `${files[0]} has the SHA-256 ${actual}, but its Modelfile requires ${digest}.`,
    );
  }

  async #auxiliary(file: ModelFile, kind: NonNullable<GgufSummary["auxiliary"]>): Promise<string> {
    const real = await realModelPath(file);
    const { auxiliary, purpose } = await this.#options.inspect([real]);
    if (auxiliary === kind) return real;
    throw new ServiceError(
      "invalid_model_file",
      `${file.path} is not ${FILE_KINDS[kind]} but ${FILE_KINDS[auxiliary ?? purpose]}.`,
    );
  }
}

async function hash(files: readonly string[]): Promise<string> {
  const sum = createHash("sha256");
  for (const file of files) await pipeline(createReadStream(file), sum, { end: false });
  return sum.digest("hex");
}
