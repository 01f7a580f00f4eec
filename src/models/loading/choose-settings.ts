import { type LoadSetting, type LoadSettings, settingName } from "../../config/load-settings.ts";
import type { Kernels } from "../../engine/engine-image.ts";
import { type EngineSpec, isQuantizedCacheType, KV_BLOCK_SIZE } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ContextSource, GgufSummary } from "../model.ts";

/** Minimum context of an engine, as in the schema of its specification. */
const MIN_CONTEXT = 16;

/** Context that every model gets if it was trained for that much: chats fit into it, and its KV cache is small. */
export const BASE_CONTEXT = 4096;

/**
 * Largest context that is chosen automatically. Coding agents start with 10,000 to 25,000 tokens; few clients would use
 * the memory of a larger KV cache.
 */
const MAX_AUTOMATIC_CONTEXT = 32_768;

export interface ContextChoice {
  readonly contextSize: number;
  readonly contextSource: ContextSource;
}

/** Context sizes from all sources; the first one that is set takes precedence. */
interface ContextPreferences {
  readonly requested: number | undefined;
  readonly modelfile: number | undefined;
  /** 0: automatic. */
  readonly configured: number;
  /** Default of the API that loads the model; undefined: automatic. */
  readonly fallback: number | undefined;
}

/** Returns the tokens of context that a model was trained for, extended by RoPE frequency scaling; 0: unknown. */
export function supportedContext(
  { contextLength }: Pick<GgufSummary, "contextLength">,
  { ropeFreqScale = 1 }: Pick<LoadSettings, "ropeFreqScale">,
): number {
  return Math.floor(contextLength / ropeFreqScale);
}

/**
 * Returns the context sizes to try for a model, the largest first; the last one is used however much memory it takes.
 * The size in a request or a Modelfile is used unchanged; any other is limited to the context the model was trained
 * for.
 */
export function contextChoices(
  { contextLength: trained, purpose }: Pick<GgufSummary, "contextLength" | "purpose">,
  { requested, modelfile, configured, fallback }: ContextPreferences,
): readonly [ContextChoice, ...ContextChoice[]] {
  if (requested !== undefined) return [{ contextSize: requested, contextSource: "request" }];
  if (modelfile !== undefined) return [{ contextSize: modelfile, contextSource: "modelfile" }];
  const upToTrained = (contextSize: number, contextSource: ContextSource): ContextChoice =>
    trained > 0 && trained <= contextSize
      ? { contextSize: Math.max(MIN_CONTEXT, trained), contextSource: "trained" }
      : { contextSize, contextSource };
  if (configured > 0) return [upToTrained(configured, "configuration")];
  if (fallback !== undefined) return [upToTrained(fallback, "default")];
  // An encoder processes a text in one batch, whose memory grows with the context. A model whose header has no context
  // length might produce nonsense beyond the base context.
  const mayBeLarge = trained > 0 && purpose === "generate";
  const largest = upToTrained(mayBeLarge ? MAX_AUTOMATIC_CONTEXT : BASE_CONTEXT, "automatic");
  const smaller: ContextChoice[] = [];
  for (let size = MAX_AUTOMATIC_CONTEXT / 2; size >= BASE_CONTEXT; size /= 2) {
    if (size < largest.contextSize) smaller.push({ contextSize: size, contextSource: "memory" });
  }
  return [largest, ...smaller];
}

/** Share of the memory left free by the base context that a larger context may take. */
const LARGER_CONTEXT_SHARE = 1 / 2;

/** Maximum extra bytes, of the machine's and the GPU's memory together: loading the model has to write them all. */
const MAX_EXTRA_CONTEXT_BYTES = 4 * 1024 ** 3;

/**
 * True if an engine with a larger context takes little enough memory to be chosen automatically.
 * @param freeBytes memory for all engines, minus the reservations of other models
 */
export function isAffordable(bytes: number, baseBytes: number, freeBytes: number): boolean {
  const extraBytes = bytes - baseBytes;
  return extraBytes <= Math.min(MAX_EXTRA_CONTEXT_BYTES, (freeBytes - baseBytes) * LARGER_CONTEXT_SHARE);
}

/** Full contexts worth caching: clients rarely alternate between more conversations. */
const MAX_CACHED_CONTEXTS = 4;

/** Largest prompt cache that is chosen automatically. */
const MAX_PROMPT_CACHE_BYTES = 1024 ** 3;

/** Share of the free memory for the prompt cache; the rest serves other models and longer contexts. */
const PROMPT_CACHE_SHARE = 1 / 8;

interface PromptCacheInputs {
  readonly spec: EngineSpec;
  readonly kvBytesPerToken: number;
  readonly kernels: Kernels;
  /** Configured bytes; -1: chosen automatically. */
  readonly configured: number;
  /** Bytes for engines, minus the needs of this one without a prompt cache and the reservations of others. */
  readonly freeBytes: number;
}

/** Chooses the bytes of an engine's prompt cache, for prompts that are no longer in a slot; undefined: no cache. */
export function choosePromptCache({
  spec: { purpose, contextSize, contextShift, cacheReuse = 0, draft },
  kvBytesPerToken,
  kernels,
  configured,
  freeBytes,
}: PromptCacheInputs): number | undefined {
  // The KV cache of a shifted context depends on tokens that have been dropped, so it cannot be reused.
  const isShifted = contextShift || cacheReuse > 0;
  // The prompt cache does not include the draft model's KV cache.
  if (purpose !== "generate" || kernels === "stock" || isShifted || draft !== undefined) return undefined;
  if (configured >= 0) return configured || undefined;
  const preferredBytes = Math.min(
    MAX_PROMPT_CACHE_BYTES,
    MAX_CACHED_CONTEXTS * contextSize * kvBytesPerToken,
  );
  return Math.max(0, Math.floor(Math.min(preferredBytes, freeBytes * PROMPT_CACHE_SHARE))) || undefined;
}

const YARN_SETTINGS = [
  "yarnOrigCtx",
  "yarnExtFactor",
  "yarnAttnFactor",
  "yarnBetaFast",
  "yarnBetaSlow",
] as const;

/** Block size in which llama.cpp rotates quantized keys; with other head widths, a context shift divides by zero. */
const SHIFTABLE_WIDTH = 64;

/**
 * Rejects combinations that llama.cpp refuses in the middle of a load, or silently ignores.
 * @throws ServiceError invalid_parameter
 */
export function checkLoadSettings(
  settings: LoadSettings,
  { headWidths, purpose }: Pick<GgufSummary, "headWidths" | "purpose">,
): void {
  const { cacheTypeK, cacheTypeV, flashAttention, ropeScaling } = settings;
  if (flashAttention === "false" && isQuantizedCacheType(cacheTypeV)) {
    throw refusal(
      "cacheTypeV",
      `${cacheTypeV} needs flash attention; set flash_attention to auto or true, or cache_type_v to f16.`,
    );
  }
  const caches = [
    ["cacheTypeK", cacheTypeK, headWidths?.key],
    ["cacheTypeV", cacheTypeV, headWidths?.value],
  ] as const;
  for (const [field, type, width] of caches) {
    if (!isQuantizedCacheType(type) || width === undefined || width % KV_BLOCK_SIZE === 0) continue;
    throw refusal(
      field,
      `${type} needs attention heads whose width is a multiple of ${KV_BLOCK_SIZE}, and this model's have ${width}; use f16.`,
    );
  }
  const shiftSetting = settings.contextShift
    ? "contextShift"
    : settings.cacheReuse
      ? "cacheReuse"
      : undefined;
  if (shiftSetting && isQuantizedCacheType(cacheTypeK) && (headWidths?.key ?? 0) % SHIFTABLE_WIDTH !== 0) {
    throw refusal(
      shiftSetting,
      `with quantized keys needs attention heads whose width is a multiple of ${SHIFTABLE_WIDTH}, and this model's have ${headWidths?.key}; use f16 as cache_type_k.`,
    );
  }
  if (ropeScaling === "none" && (settings.ropeFreqScale ?? 1) !== 1) {
    throw refusal("ropeFreqScale", "has no effect with rope_scaling none; set that to linear or yarn.");
  }
  const yarnSetting = YARN_SETTINGS.find((field) => settings[field] !== undefined);
  if (yarnSetting && ropeScaling !== undefined && ropeScaling !== "yarn") {
    throw refusal(yarnSetting, `has no effect with rope_scaling ${ropeScaling}; set that to yarn.`);
  }
  if (purpose === "rerank" && settings.pooling !== undefined) {
    throw refusal("pooling", "cannot be set for a reranker, which has a rank head; leave it out.");
  }
}

function refusal(field: LoadSetting, problem: string): ServiceError {
  const param = settingName(field);
  return new ServiceError("invalid_parameter", `${param}: ${problem}`, { param });
}
