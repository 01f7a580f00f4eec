import { type LoadSetting, type LoadSettings, settingName } from "../../config/load-settings.ts";
import type { Kernels } from "../../engine/engine-image.ts";
import { type EngineSpec, isQuantizedCache, KV_BLOCK } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ContextSource, GgufSummary } from "../model.ts";

/** The minimum of an engine, as in its schema. */
const SMALLEST_CONTEXT = 16;

/** What every model gets, as far as it was trained for it: chats fit into it, and its cache is small. */
export const BASE_CONTEXT = 4096;

/**
 * Most tokens that are chosen without being asked for. Coding agents begin with 10,000 to 25,000; the cache of more would
 * be memory that few use.
 */
const MAX_AUTOMATIC_CONTEXT = 32_768;

/** Tokens of context, and where that number comes from. */
export interface ContextChoice {
  readonly contextSize: number;
  readonly source: ContextSource;
}

/** Everything that may say how much context a model gets; what comes first wins. */
interface ContextWishes {
  readonly asked: number | undefined;
  readonly ofModel: number | undefined;
  /** 0: automatic. */
  readonly configured: number;
  /** Of the caller, for a model of which nobody has said anything; undefined: automatic. */
  readonly fallback: number | undefined;
}

/** Tokens of context that a model was trained for, or those that RoPE is told to stretch them to; 0: unknown. */
export function reachableContext(
  { contextLength }: Pick<GgufSummary, "contextLength">,
  { ropeFreqScale = 1 }: Pick<LoadSettings, "ropeFreqScale">,
): number {
  return Math.floor(contextLength / ropeFreqScale);
}

/**
 * The contexts to try for a model, the largest first; the last one is used however much memory it takes. What a request
 * or a Modelfile asks for is used as it is; any other choice is at most what the model was trained for.
 */
export function contextChoices(
  { contextLength: trained, purpose }: Pick<GgufSummary, "contextLength" | "purpose">,
  { asked, ofModel, configured, fallback }: ContextWishes,
): readonly [ContextChoice, ...ContextChoice[]] {
  if (asked !== undefined) return [{ contextSize: asked, source: "request" }];
  if (ofModel !== undefined) return [{ contextSize: ofModel, source: "modelfile" }];
  const upToTrained = (contextSize: number, source: ContextSource): ContextChoice =>
    trained > 0 && trained <= contextSize
      ? { contextSize: Math.max(SMALLEST_CONTEXT, trained), source: "trained" }
      : { contextSize, source };
  if (configured > 0) return [upToTrained(configured, "configuration")];
  if (fallback !== undefined) return [upToTrained(fallback, "default")];
  // An encoder reads a text in one step, so its context decides on the memory of that step; and nobody knows what a model
  // whose header does not say it was trained for makes of more.
  const most =
    trained > 0 && purpose === "generate"
      ? upToTrained(MAX_AUTOMATIC_CONTEXT, "automatic")
      : upToTrained(BASE_CONTEXT, "automatic");
  const smaller: ContextChoice[] = [];
  for (let size = MAX_AUTOMATIC_CONTEXT / 2; size >= BASE_CONTEXT; size /= 2) {
    if (size < most.contextSize) smaller.push({ contextSize: size, source: "memory" });
  }
  return [most, ...smaller];
}

/** Share of the memory that a model with the base context leaves free which a larger one may take. */
const LARGER_CONTEXT_SHARE = 1 / 2;

/** Most bytes that it may take, of the machine's memory and the GPU's together: they are written when the model is loaded. */
const MAX_LARGER_BYTES = 4 * 1024 ** 3;

/**
 * Whether a larger context takes little enough memory to be chosen without being asked for.
 * @param bytes what the engine needs with it
 * @param baseBytes what it needs with the base context
 * @param freeBytes what all engines together may use, less what the others have
 */
export function isAffordable(bytes: number, baseBytes: number, freeBytes: number): boolean {
  const more = bytes - baseBytes;
  return more <= Math.min(MAX_LARGER_BYTES, (freeBytes - baseBytes) * LARGER_CONTEXT_SHARE);
}

/** Whole contexts that are worth keeping: more conversations than these seldom take turns. */
const CONTEXTS = 4;

/** Most bytes that are chosen without being asked for. */
const MAX_BYTES = 1024 ** 3;

/** Share of the memory that the engine leaves free: other models and longer contexts are better uses for the rest. */
const FREE_SHARE = 1 / 8;

export interface PromptCacheQuestion {
  readonly spec: Pick<EngineSpec, "purpose" | "contextSize" | "contextShift" | "cacheReuse"> & {
    readonly draft?: unknown;
  };
  readonly kvBytesPerToken: number;
  readonly kernels: Kernels;
  /** -1: choose. */
  readonly configured: number;
  /** Bytes that engines may use, less what this one needs without a prompt cache, and others. */
  readonly freeBytes: number;
}

/** Bytes that an engine gets for prompts that no slot holds any more; undefined: none. */
export function choosePromptCache({
  spec: { purpose, contextSize, contextShift, cacheReuse = 0, draft },
  kvBytesPerToken,
  kernels,
  configured,
  freeBytes,
}: PromptCacheQuestion): number | undefined {
  // What is left of a shifted context was computed from what has been dropped.
  const isShifted = contextShift || cacheReuse > 0;
  // A draft model would have read something else.
  if (purpose !== "generate" || kernels === "stock" || isShifted || draft !== undefined) return undefined;
  if (configured >= 0) return configured || undefined;
  const wished = Math.min(MAX_BYTES, CONTEXTS * contextSize * kvBytesPerToken);
  return Math.max(0, Math.floor(Math.min(wished, freeBytes * FREE_SHARE))) || undefined;
}

const OF_YARN = ["yarnOrigCtx", "yarnExtFactor", "yarnAttnFactor", "yarnBetaFast", "yarnBetaSlow"] as const;

/** llama.cpp rotates quantized keys by blocks of so many numbers; where it has none, moving the keys divides by zero. */
const SHIFTED_WIDTH = 64;

/**
 * Checks what llama.cpp would refuse, often in the middle of a load, or silently leave out.
 * @throws ServiceError invalid_parameter
 */
export function checkLoadSettings(
  settings: LoadSettings,
  { headWidths, purpose }: Pick<GgufSummary, "headWidths" | "purpose">,
): void {
  const { cacheTypeK, cacheTypeV, flashAttention, ropeScaling } = settings;
  if (flashAttention === "false" && isQuantizedCache(cacheTypeV)) {
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
    if (!isQuantizedCache(type) || width === undefined || width % KV_BLOCK === 0) continue;
    throw refusal(
      field,
      `${type} needs attention heads whose width is a multiple of ${KV_BLOCK}, and this model's have ${width}; use f16.`,
    );
  }
  const shifted = settings.contextShift ? "contextShift" : settings.cacheReuse ? "cacheReuse" : undefined;
  if (shifted && isQuantizedCache(cacheTypeK) && (headWidths?.key ?? 0) % SHIFTED_WIDTH !== 0) {
    throw refusal(
      shifted,
      `with quantized keys needs attention heads whose width is a multiple of ${SHIFTED_WIDTH}, and this model's have ${headWidths?.key}; use f16 as cache_type_k.`,
    );
  }
  if (ropeScaling === "none" && (settings.ropeFreqScale ?? 1) !== 1) {
    throw refusal("ropeFreqScale", "has no effect with rope_scaling none; set that to linear or yarn.");
  }
  const ofYarn = OF_YARN.find((field) => settings[field] !== undefined);
  if (ofYarn && ropeScaling !== undefined && ropeScaling !== "yarn") {
    throw refusal(ofYarn, `has no effect with rope_scaling ${ropeScaling}; set that to yarn.`);
  }
  if (purpose === "rerank" && settings.pooling !== undefined) {
    throw refusal("pooling", "cannot be set for a reranker, which has a rank head; leave it out.");
  }
}

function refusal(field: LoadSetting, what: string): ServiceError {
  const param = settingName(field);
  return new ServiceError("invalid_parameter", `${param}: ${what}`, { param });
}
