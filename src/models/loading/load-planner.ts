import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type { LoadSettings } from "../../config/load-settings.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { checkTemplateLength } from "../../engine/try-template.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import { type ContextSource, type GgufSummary, NO_SETTINGS, type Speculation } from "../model.ts";
import type { ModelsOptions } from "../models-options.ts";
import type { LoadOptions, Residency } from "../models.ts";
import { type ModelFile, realModelPath } from "../registry/model-file.ts";
import type { ModelRecord } from "../registry/model-record.ts";
import { type ContextChoice, reachableContext } from "./choose-settings.ts";
import { type LoadRequest, EnginePlanner, type EnginePlannerOptions } from "./engine-planner.ts";
import type { Eviction } from "./memory-budget.ts";

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
  /** Where the size of its context comes from. */
  readonly contextSource: ContextSource;
  /** How its requests guess tokens; undefined: not, and nobody has said anything of it. */
  readonly speculation?: Speculation | undefined;
  /**
   * What the engine would need with another specification.
   * @throws ServiceError insufficient_memory if it exceeds any engine's limit
   */
  readonly needsOf: (spec: EngineSpec) => MemoryNeeds;
  /** Maximum heap in bytes of an engine with this specification; absent: no limit of its own. */
  readonly heapLimitOf?: ((spec: EngineSpec) => number) | undefined;
  /** The same with less context, where a larger one was chosen without being asked for. */
  readonly withLessContext?: LoadPlan | undefined;
  /** Plans the same load again, after other models have been loaded. */
  readonly replan: () => Promise<LoadPlan>;
  /** Milliseconds of idleness after which it is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  /** Idle models may be unloaded to make room. */
  readonly mayEvict: Eviction;
}

/** The caller's choices for a load; the rest comes from the model and the configuration. */
interface Overrides extends Residency, LoadRequest, Pick<LoadOptions, "speculation"> {
  readonly keepAliveMs: number;
  readonly mayEvict: Eviction;
}

interface LoadPlannerOptions
  extends EnginePlannerOptions, Pick<ModelsOptions, "heapLimit" | "placeLayers" | "logger"> {
  readonly inspect: InspectGguf;
  /** Bytes of GPU memory that other models use, without idle ones if those may be unloaded. */
  readonly takenOnGpu: (alias: string, mayEvict: Eviction) => number;
  /** Bytes that engines may use now, less what others have; idle ones count as free if those may be unloaded. */
  readonly freeMemory: (alias: string, mayEvict: Eviction) => number;
}

/** What other models leave, in bytes. */
interface Surroundings {
  readonly takenOnGpu: number;
  readonly free: number;
}

/** Most tokens of a guess: longer ones gain little, and cost much where they are wrong. */
const GUESS_TOKENS = 16;

/** llama.cpp takes two models for ones with the same tokens when they differ by no more, which are unused ones at the end. */
const MAX_FURTHER_TOKENS = 128;

/** What a file is. */
const IN_WORDS: Readonly<Record<NonNullable<GgufSummary["auxiliary"]> | GgufSummary["purpose"], string>> = {
  adapter: "an adapter",
  projector: "a projector",
  generate: "a model that generates text",
  embed: "an embedding model",
  rerank: "a reranker model",
};

/** Decides on the exact engine to start for a model on disk. */
export class LoadPlanner {
  readonly #options: LoadPlannerOptions;
  readonly #engines: EnginePlanner;
  readonly #verifyDigest = createDigestVerifier();

  constructor(options: LoadPlannerOptions) {
    this.#options = options;
    this.#engines = new EnginePlanner(options);
  }

  /** Throws if one of the model's files is missing, not allowed, of the wrong kind, or has a wrong digest. */
  async plan(record: ModelRecord, overrides: Overrides): Promise<LoadPlan> {
    const { takenOnGpu, freeMemory } = this.#options;
    const { alias } = record;
    const { mayEvict } = overrides;
    return await this.#plan(record, overrides, {
      takenOnGpu: takenOnGpu(alias, mayEvict),
      free: freeMemory(alias, mayEvict),
    });
  }

  /** Throws what loading the model would throw if nothing else were loaded. */
  async check(record: ModelRecord): Promise<void> {
    await this.#plan(record, { keepAliveMs: 0, mayEvict: false }, this.#nothingLoaded);
  }

  /**
   * How a model with such a header would be loaded if nothing else were; none of it has to be on disk.
   * @throws ServiceError insufficient_memory or gpu_unavailable if no engine can have it
   */
  async estimate(gguf: GgufSummary): Promise<MemoryNeeds & { readonly spec: EngineSpec }> {
    const { estimateMemory, estimateGpuMemory, placeLayers } = this.#options;
    const model = { gguf, settings: NO_SETTINGS };
    const { spec } = await this.#engines.choose(
      model,
      {},
      {
        free: this.#nothingLoaded.free,
        further: {},
        place: async (each) => await placeLayers(gguf, each, undefined, 0),
      },
    );
    return { spec, bytes: estimateMemory(gguf, spec), gpuBytes: estimateGpuMemory(gguf, spec) };
  }

  get #nothingLoaded(): Surroundings {
    return { takenOnGpu: 0, free: this.#options.memoryBudget };
  }

  async #plan(
    record: ModelRecord,
    overrides: Overrides,
    { takenOnGpu, free }: Surroundings,
  ): Promise<LoadPlan> {
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
    const layers = overrides.gpuLayers ?? settings.gpuLayers;
    const speculation = this.speculation(record, overrides.speculation);
    const { spec, warning, source, base } = await this.#engines.choose(record, overrides, {
      free,
      further: {
        modelFiles,
        ...(projectorFile === undefined ? {} : { projectorFile }),
        ...(record.projector?.media.audio && { hearsAudio: true }),
        adapters: await Promise.all(adapters),
        ...(settings.template === undefined ? {} : { chatTemplate: settings.template }),
        ...(await this.#guesses(record, speculation)),
      },
      place: async (each) => await this.#options.placeLayers(gguf, each, layers, takenOnGpu),
    });
    if (warning !== undefined) logger.warn({ model: record.alias }, warning);
    this.#warnAboutContext(record, spec);
    const { keepAliveMs, mayEvict } = overrides;
    const needsOf = (other: EngineSpec): MemoryNeeds => ({
      bytes: estimateMemory(gguf, other),
      gpuBytes: estimateGpuMemory(gguf, other),
    });
    const heapLimitOf = heapLimit && ((other: EngineSpec): number => heapLimit(gguf, other));
    const replan = async (): Promise<LoadPlan> => await this.plan(record, overrides);
    const common = { record, speculation, needsOf, heapLimitOf, replan, keepAliveMs, mayEvict };
    const planOf = (chosen: EngineSpec, contextSource: ContextSource): LoadPlan => ({
      ...common,
      ...needsOf(chosen),
      spec: chosen,
      contextSource,
    });
    return {
      ...planOf(spec, source),
      ...(base && { withLessContext: planOf(base.spec, base.source) }),
    };
  }

  /** The context that a model would be loaded with if it were loaded alone and on the CPU. */
  likelyContext(record: Pick<ModelRecord, "gguf" | "settings">): ContextChoice {
    return this.#engines.likelyContext(record);
  }

  /** What is said of how to load a model, by itself and in the configuration. */
  loadSettings(record: Pick<ModelRecord, "gguf" | "settings">): LoadSettings {
    return this.#engines.loadSettings(record);
  }

  /**
   * How requests of a model guess tokens: as the caller says, the model itself or the configuration.
   * @returns undefined where that says nothing, as "auto" does without a draft model
   */
  speculation(
    { gguf, draft, settings }: Pick<ModelRecord, "gguf" | "draft" | "settings">,
    wished?: Speculation,
  ): Speculation | undefined {
    if (gguf.purpose !== "generate") return undefined;
    const said = wished ?? settings.speculation ?? this.#options.config.models.speculation;
    return said === "auto" && !draft ? undefined : said;
  }

  #warnAboutContext({ alias, gguf }: ModelRecord, spec: EngineSpec): void {
    const { contextSize } = spec;
    const reachable = reachableContext(gguf, spec);
    if (reachable === 0 || contextSize <= reachable) return;
    this.#options.logger.warn(
      { model: alias, contextSize, trainedContextSize: gguf.contextLength },
      "The context is larger than the model was trained for; far into it, its answers may make no sense",
    );
  }

  /** How an engine guesses tokens, with the model's draft model if it may. */
  async #guesses(
    { gguf, draft, alias }: ModelRecord,
    speculation: Speculation | undefined,
  ): Promise<Pick<EngineSpec, "draft" | "guessTokens">> {
    if (speculation === undefined || speculation === "off") return {};
    if (!draft) return { guessTokens: GUESS_TOKENS };
    const path = await realModelPath(draft);
    const { auxiliary, purpose, vocabSize, kvBytesPerToken } = await this.#options.inspect([path]);
    if (auxiliary || purpose !== "generate")
      throw new ServiceError("invalid_model_file", `${draft.path} is not a model that generates text.`);
    if (Math.abs(vocabSize - gguf.vocabSize) > MAX_FURTHER_TOKENS)
      throw new ServiceError(
        "invalid_model_file",
        `${draft.path} has ${vocabSize} tokens and ${alias} has ${gguf.vocabSize}; a draft model needs the same tokens, so choose a small model of the same family.`,
      );
    return { draft: { path, kvBytesPerToken }, guessTokens: GUESS_TOKENS };
  }

  async #auxiliary(file: ModelFile, kind: NonNullable<GgufSummary["auxiliary"]>): Promise<string> {
    const real = await realModelPath(file);
    const { auxiliary, purpose } = await this.#options.inspect([real]);
    if (auxiliary === kind) return real;
    throw new ServiceError(
      "invalid_model_file",
      `${file.path} is not ${IN_WORDS[kind]} but ${IN_WORDS[auxiliary ?? purpose]}.`,
    );
  }
}

/**
 * Checks files against a SHA-256 (of all of them, one after another), in lower-case hexadecimal. Throws
 * `checksum_mismatch`.
 */
type VerifyDigest = (files: readonly string[], digest: string) => Promise<void>;

/** Creates a checker that reads files again only when their size or time has changed. */
function createDigestVerifier(): VerifyDigest {
  const known = new Map<string, Promise<string>>();
  return async (files, digest) => {
    const stats = await Promise.all(files.map(async (file) => await stat(file)));
    const key = stats.map(({ size, mtimeMs }, index) => `${files[index]}:${size}:${mtimeMs}`).join("\0");
    const before = known.get(key) ?? hash(files);
    known.set(key, before);
    before.catch(() => known.delete(key));
    const actual = await before;
    if (actual === digest) return;
    throw new ServiceError(
      "checksum_mismatch",
      `${files[0]} has the SHA-256 ${actual}, but its Modelfile requires ${digest}.`,
    );
  };
}

async function hash(files: readonly string[]): Promise<string> {
  const sum = createHash("sha256");
  for (const file of files) await pipeline(createReadStream(file), sum, { end: false });
  return sum.digest("hex");
}
