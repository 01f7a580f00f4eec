import type { GgufSummary } from "../model.ts";
import type { GgufHeader } from "./read-header.ts";

/** Architectures that only encode: they embed or rank, and never generate. */
const ENCODERS: ReadonlySet<string> = new Set([
  "bert",
  "eurobert",
  "gemma-embedding",
  "jina-bert-v2",
  "jina-bert-v3",
  "llama-embed",
  "modern-bert",
  "neo-bert",
  "nomic-bert",
  "nomic-bert-moe",
  "t5encoder",
]);

/** enum llama_pooling_type: 0 is none, 1 to 3 are mean, first and last token, 4 is a rank head. */
const POOLING_NONE = 0;
const POOLING_RANK = 4;

export function isEncoder(architecture: string): boolean {
  return ENCODERS.has(architecture);
}

/**
 * What a model is for. A reranker is one that has the head for it: without the head it runs and its scores mean
 * nothing, so such a model only embeds.
 */
export function modelPurpose(header: GgufHeader, architecture: string): GgufSummary["purpose"] {
  const value = header.metadata.get(`${architecture}.pooling_type`);
  const pooling = typeof value === "number" ? value : POOLING_NONE;
  const encoder = isEncoder(architecture);
  if (header.tensors.hasRankHead && (encoder || pooling === POOLING_RANK)) return "rerank";
  return encoder || pooling !== POOLING_NONE ? "embed" : "generate";
}

/** An adapter or a projector is loaded beside a model, never as one. */
export function auxiliaryKind(header: GgufHeader, architecture: string): GgufSummary["auxiliary"] {
  const kind = header.metadata.get("general.type");
  if (kind === "adapter" || header.metadata.has("adapter.type")) return "adapter";
  return kind === "mmproj" || architecture === "clip" ? "projector" : undefined;
}
