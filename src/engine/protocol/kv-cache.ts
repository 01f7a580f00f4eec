import type { EngineSpec } from "./engine-spec.ts";

type KvCacheType = NonNullable<EngineSpec["cacheTypeK"]>;
export type KvCacheTypes = Pick<EngineSpec, "cacheTypeK" | "cacheTypeV">;

/** Numbers in a block of a quantized cache. */
export const KV_BLOCK = 32;

/** Bytes per number for each type. */
export const CACHE_TYPE_BYTES: Readonly<Record<KvCacheType, number>> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / KV_BLOCK,
  q5_1: 24 / KV_BLOCK,
  q5_0: 22 / KV_BLOCK,
  q4_1: 20 / KV_BLOCK,
  q4_0: 18 / KV_BLOCK,
};

/** Whether keys or values of this type are kept in blocks with a common scale. */
export function isQuantizedCache(type: KvCacheType | undefined): boolean {
  return type !== undefined && type !== "f16" && type !== "f32";
}

/** Bytes of KV cache per token, with as many numbers in K as in V. @param atHalf the same with both in f16 */
export function kvBytesPerToken(
  atHalf: number,
  { cacheTypeK = "f16", cacheTypeV = "f16" }: KvCacheTypes,
): number {
  return (atHalf / 2 / CACHE_TYPE_BYTES.f16) * (CACHE_TYPE_BYTES[cacheTypeK] + CACHE_TYPE_BYTES[cacheTypeV]);
}
