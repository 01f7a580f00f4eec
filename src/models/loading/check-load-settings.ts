import { type LoadSetting, type LoadSettings, settingName } from "../../config/load-settings.ts";
import { isQuantizedCache, KV_BLOCK } from "../../engine/protocol/kv-cache.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { GgufSummary } from "../model.ts";

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
