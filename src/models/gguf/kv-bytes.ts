import type { Metadata } from "./read-metadata.ts";

/** f16 */
const BYTES_PER_ELEMENT = 2;

/**
 * Bytes of KV cache for one token of context at f16, all layers together. Layers that see only a sliding window
 * are counted like the others: an upper bound. Architectures without attention have none.
 */
export function kvBytesPerToken(metadata: Metadata, architecture: string): number {
  const number = (key: string): number | undefined => {
    const value = metadata.get(`${architecture}.${key}`);
    return typeof value === "number" ? value : undefined;
  };
  const layers = number("block_count") ?? 0;
  const heads = perLayer(metadata, `${architecture}.attention.head_count`, layers);
  const kvHeads = perLayer(metadata, `${architecture}.attention.head_count_kv`, layers) ?? heads;
  if (!heads || !kvHeads) return 0;
  const headSize = (number("embedding_length") ?? 0) / Math.max(...heads, 1);
  const elements =
    (number("attention.key_length") ?? headSize) + (number("attention.value_length") ?? headSize);
  const total = kvHeads.reduce((sum, count) => sum + count, 0) * elements * BYTES_PER_ELEMENT;
  return Number.isFinite(total) && total > 0 ? Math.ceil(total) : 0;
}

/** Attention heads of the layer that has most; 0 when the header does not say. */
export function largestHeadCount(metadata: Metadata, architecture: string): number {
  return Math.max(0, ...(perLayer(metadata, `${architecture}.attention.head_count`, 1) ?? []));
}

/** More layers than this no model has; the number comes from the file. */
const MAX_LAYERS = 4096;

function perLayer(metadata: Metadata, key: string, layers: number): readonly number[] | undefined {
  const value = metadata.get(key);
  if (typeof value === "number") return Array.from({ length: Math.min(layers, MAX_LAYERS) }, () => value);
  return typeof value === "object" ? value.numbers : undefined;
}
