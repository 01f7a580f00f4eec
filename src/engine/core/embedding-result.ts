import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import type { EmbeddingResult, RerankResult } from "../protocol/calls.ts";

const vectorSchema = z.array(z.number()).min(1);

const embeddingAnswerSchema = z.object({
  data: z.tuple([
    z.object({
      /** A model without pooling returns a vector for each token. */
      embedding: z.union([vectorSchema, z.array(vectorSchema).min(1)]),
    }),
  ]),
  usage: z.object({ prompt_tokens: z.int().min(0) }),
});

const rerankAnswerSchema = z.object({ score: z.number(), tokens_evaluated: z.int().min(0) });

/** Reads the embedding of one text. Averages the vectors of its tokens if the model does not. */
export function readEmbedding(answer: unknown): EmbeddingResult {
  const { data, usage } = parseAnswer(embeddingAnswerSchema, answer, "an embedding");
  const { embedding } = data[0];
  const vector = isNested(embedding) ? normalizedMean(embedding) : embedding;
  return { vector, tokens: usage.prompt_tokens };
}

function isNested(rows: number[] | number[][]): rows is number[][] {
  return Array.isArray(rows[0]);
}

function normalizedMean(rows: readonly (readonly number[])[]): number[] {
  const sum: number[] = Array.from({ length: rows[0]?.length ?? 0 }, () => 0);
  for (const row of rows) row.forEach((value, index) => (sum[index] = (sum[index] ?? 0) + value));
  const norm = Math.hypot(...sum);
  return norm > 0 ? sum.map((value) => value / norm) : sum;
}

/** Reads the score of one document. */
export function readRerank(answer: unknown): RerankResult {
  const { score, tokens_evaluated: tokens } = parseAnswer(rerankAnswerSchema, answer, "a score");
  return { score, tokens };
}

function parseAnswer<Answer>(schema: z.ZodType<Answer>, answer: unknown, what: string): Answer {
  const { data, error } = schema.safeParse(answer);
  if (error)
    throw new ServiceError("inference_failed", `The model did not return ${what}.`, { cause: error });
  return data;
}
