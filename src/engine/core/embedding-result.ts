import { ServiceError } from "../../errors/service-error.ts";
import type { EmbeddingResult, RerankResult } from "../protocol/engine-spec.ts";

interface EmbeddingAnswer {
  readonly data?: readonly { readonly embedding?: readonly number[] | readonly (readonly number[])[] }[];
  readonly usage?: { readonly prompt_tokens?: number };
}

/**
 * Reads llama.cpp's answer to one text. A model without pooling gives a vector for each token; their mean is
 * taken.
 */
export function readEmbedding(answer: unknown): EmbeddingResult {
  const { data, usage } = answer as EmbeddingAnswer;
  const embedding = data?.[0]?.embedding;
  if (!embedding || embedding.length === 0) {
    throw new ServiceError("inference_failed", "The model gave no embedding.");
  }
  const vector = isNested(embedding) ? normalisedMean(embedding) : [...(embedding as readonly number[])];
  if (!vector.every(Number.isFinite)) {
    throw new ServiceError("inference_failed", "The model gave an embedding that is not made of numbers.");
  }
  return { vector, tokens: usage?.prompt_tokens ?? 0 };
}

function isNested(rows: readonly unknown[]): rows is readonly (readonly number[])[] {
  return Array.isArray(rows[0]);
}

function normalisedMean(rows: readonly (readonly number[])[]): number[] {
  const sum: number[] = Array.from({ length: rows[0]?.length ?? 0 }, () => 0);
  for (const row of rows) row.forEach((value, index) => (sum[index] = (sum[index] ?? 0) + value));
  const norm = Math.hypot(...sum);
  return norm > 0 ? sum.map((value) => value / norm) : sum;
}

/** Reads llama.cpp's answer to one document. */
export function readRerank(answer: unknown): RerankResult {
  const { score, tokens_evaluated: tokens } = answer as { score?: number | null; tokens_evaluated?: number };
  if (typeof score !== "number" || !Number.isFinite(score)) {
    throw new ServiceError("inference_failed", "The model gave no score.");
  }
  return { score, tokens: tokens ?? 0 };
}
