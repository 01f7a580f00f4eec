import { contextTokens, type EngineSpec, isQuantizedCacheType } from "../protocol/engine-spec.ts";
import { withoutUndefined } from "../../json/json-values.ts";
import { MAX_DRAFT_TOKENS } from "../protocol/sampling-fields.ts";

/** An engine specification without its file names, because the engine core receives files as blobs. */
export type EngineSettings = Omit<EngineSpec, "modelFiles" | "projectorFile" | "adapters" | "draft">;

/** Name of an adapter in the engine's virtual file system. */
export const adapterName = (index: number): string => `adapter-${index}.gguf`;

/** Name of a draft model in the engine's virtual file system. */
export const DRAFT_NAME = "draft.gguf";

/** Minimum probability of a token that a draft model drafts. */
const DRAFT_MIN_PROBABILITY = 0.6;

/** Load parameters of wllama, named as in llama.cpp. */
export type LoadParameters = ReturnType<typeof buildLoadParameters>;

/**
 * Converts settings into load parameters of wllama.
 * @param adapterScales scale of each adapter, in order
 * @param hasDraft true if the files include a draft model
 */
export function buildLoadParameters(
  settings: EngineSettings,
  adapterScales: readonly number[],
  hasDraft: boolean,
) {
  const batchSize = maxStepTokens(settings);
  const isCpuOnly = settings.gpuLayers === 0 || settings.gpu === undefined;
  return {
    n_gpu_layers: isCpuOnly ? 0 : settings.gpuLayers < 0 ? ALL_LAYERS : settings.gpuLayers,
    n_ctx: contextTokens({ ...settings, contextSize: roundContextSize(settings.contextSize) }),
    n_threads: engineThreads(settings),
    n_parallel: settings.slots,
    n_batch: batchSize,
    n_ubatch: batchSize,
    kv_unified: settings.sharedContext, // otherwise llama.cpp divides the context among the slots
    // Only if the model and the backend support it.
    flash_attn: usesFlashAttention(settings, isCpuOnly),
    embeddings: true,
    pooling_type: settings.pooling ?? POOLING[settings.purpose],
    jinja: true,
    reasoning_format: "deepseek",
    prefill_assistant: false, // requests say if they continue the last message
    ctx_shift: settings.contextShift,
    // With 0, no request has drafts. A value one above the maximum tells our kernels that there is a draft model.
    spec_draft_n_max: settings.purpose === "generate" ? MAX_DRAFT_TOKENS + Number(hasDraft) : 0,
    ...(hasDraft && {
      spec_draft_model: `models/${DRAFT_NAME}`,
      spec_draft_ngl: isCpuOnly ? 0 : ALL_LAYERS,
      spec_draft_p_min: DRAFT_MIN_PROBABILITY,
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

/** Flash attention is slower on a CPU, but llama.cpp requires it for a quantized V cache. */
function usesFlashAttention({ flashAttention, cacheTypeV }: EngineSettings, isCpuOnly: boolean): boolean {
  return flashAttention === "auto"
    ? !isCpuOnly || isQuantizedCacheType(cacheTypeV)
    : flashAttention === "true";
}

/**
 * Number of the engine's threads. llama.cpp computes audio spectrograms on additional threads, which a WASM that was
 * started with a single thread cannot create.
 */
export function engineThreads({
  threads,
  hearsAudio,
}: Pick<EngineSettings, "threads" | "hearsAudio">): number {
  return hearsAudio ? Math.max(2, threads) : threads;
}

/** llama.cpp rounds the context of a slot up to a multiple of this many tokens. */
const CONTEXT_BLOCK = 256;

/** Returns the context size that one request gets. */
export function roundContextSize(contextSize: number): number {
  return Math.ceil(contextSize / CONTEXT_BLOCK) * CONTEXT_BLOCK;
}

/** Minimum batch size; llama.cpp aborts when it loads a model with a batch size of 1. */
export const MIN_STEP_TOKENS = 2;

/** Maximum tokens of a step. A multiple of the number of slots, because llama.cpp otherwise aborts with embeddings. */
export function maxStepTokens({ batchSize, slots }: Pick<EngineSettings, "batchSize" | "slots">): number {
  return Math.max(MIN_STEP_TOKENS, Math.ceil(batchSize / slots) * slots);
}

/** Number of layers that makes llama.cpp offload all of them. */
const ALL_LAYERS = 99_999;

/** Default pooling: an embedding model specifies its own, the vectors of a text model are averaged. */
const POOLING = { generate: "mean", embed: "unspecified", rerank: "rank" } as const;
