import { contextTokens, type EngineSpec, isQuantizedCache } from "../protocol/engine-spec.ts";
import { withoutUndefined } from "../../json/json-values.ts";
import { MAX_GUESSED } from "../protocol/sampling-fields.ts";
import type { LoadParameters } from "./wllama-api.ts";

/** The part of a specification without file names; files reach the engine as blobs. */
export type EngineSettings = Omit<EngineSpec, "modelFiles" | "projectorFile" | "adapters" | "draft">;

/** Name of an adapter in the engine's virtual file system. */
export const adapterName = (index: number): string => `adapter-${index}.gguf`;

/** The same of a draft model. */
export const DRAFT_NAME = "draft.gguf";

/** A draft model guesses on while it is so sure of each token. */
const DRAFT_CERTAINTY = 0.6;

/**
 * The settings as load parameters of wllama.
 * @param adapterScales one for each adapter, in order
 * @param hasDraft a draft model is among the files
 */
export function buildLoadParameters(
  settings: EngineSettings,
  adapterScales: readonly number[],
  hasDraft = false,
): LoadParameters {
  const batchSize = fullStep(settings);
  const isCpu = settings.gpuLayers === 0 || settings.gpu === undefined;
  return {
    n_gpu_layers: isCpu ? 0 : settings.gpuLayers < 0 ? ALL_LAYERS : settings.gpuLayers,
    n_ctx: contextTokens({ ...settings, contextSize: totalContext(settings.contextSize) }),
    n_threads: engineThreads(settings),
    n_parallel: settings.slots,
    n_batch: batchSize,
    n_ubatch: batchSize,
    kv_unified: settings.sharedContext, // otherwise llama.cpp divides the context among the slots
    flash_attn: usesFlashAttention(settings, isCpu),
    embeddings: true,
    pooling_type: settings.pooling ?? POOLING[settings.purpose],
    jinja: true,
    reasoning_format: "deepseek",
    prefill_assistant: false,
    ctx_shift: settings.contextShift,
    // One more than a guess may have tells the kernels of a draft model.
    spec_draft_n_max: settings.purpose === "generate" ? MAX_GUESSED + Number(hasDraft) : 0,
    ...(hasDraft && {
      spec_draft_model: `models/${DRAFT_NAME}`,
      spec_draft_ngl: isCpu ? 0 : ALL_LAYERS,
      spec_draft_p_min: DRAFT_CERTAINTY,
    }),
    cache_idle_slots: false, // needs llama.cpp's prompt cache, which is turned off
    ...withoutUndefined({
      n_keep: settings.numKeep,
      n_cache_reuse: settings.cacheReuse,
      cache_type_k: settings.cacheTypeK,
      cache_type_v: settings.cacheTypeV,
      rope_scaling_type:
        settings.ropeScaling && `LLAMA_ROPE_SCALING_TYPE_${settings.ropeScaling.toUpperCase()}`,
      rope_freq_base: settings.ropeFreqBase,
      rope_freq_scale: settings.ropeFreqScale,
      yarn_orig_ctx: settings.yarnOrigCtx,
      yarn_ext_factor: settings.yarnExtFactor,
      yarn_attn_factor: settings.yarnAttnFactor,
      yarn_beta_fast: settings.yarnBetaFast,
      yarn_beta_slow: settings.yarnBetaSlow,
    }),
    ...(settings.chatTemplate !== undefined && { chat_template: settings.chatTemplate }),
    ...(adapterScales.length > 0 && {
      lora_adapters: adapterScales.map((scale, index) => ({ path: `models/${adapterName(index)}`, scale })),
    }),
  };
}

/** On a CPU it is slower, but llama.cpp cannot read quantized values without it. */
function usesFlashAttention({ flashAttention, cacheTypeV }: EngineSettings, isCpu: boolean): boolean {
  return flashAttention === "auto" ? !isCpu || isQuantizedCache(cacheTypeV) : flashAttention === "true";
}

/**
 * Threads of the engine. llama.cpp computes spectra of sound on threads of its own, which a WASM with a single thread does
 * not have.
 */
export function engineThreads({
  threads,
  hearsAudio,
}: Pick<EngineSettings, "threads" | "hearsAudio">): number {
  return hearsAudio ? Math.max(2, threads) : threads;
}

/** llama.cpp rounds the context of a slot up to a multiple of this many tokens. */
const CONTEXT_BLOCK = 256;

/** The context size that one request actually gets. */
export function totalContext(contextSize: number): number {
  return Math.ceil(contextSize / CONTEXT_BLOCK) * CONTEXT_BLOCK;
}

/** llama.cpp aborts when it loads a model with steps of one token. */
export const MIN_STEP = 2;

/** Most tokens in a step, a multiple of the slots: otherwise llama.cpp aborts when it plans embeddings. */
export function fullStep({ batchSize, slots }: Pick<EngineSettings, "batchSize" | "slots">): number {
  return Math.max(MIN_STEP, Math.ceil(batchSize / slots) * slots);
}

/** More layers than any model has, so llama.cpp offloads all of them. */
const ALL_LAYERS = 99_999;

/** An embedding model specifies its pooling; a text model is averaged. */
const POOLING = { generate: "mean", embed: "unspecified", rerank: "rank" } as const;
