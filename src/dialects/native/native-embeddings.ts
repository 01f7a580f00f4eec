import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import type { EmbedAnswer, EmbedRequest } from "../../inference/inference.ts";
import { modelField } from "./native-request-fields.ts";

const text = z.string().min(1, { error: "must not be empty" });

export const embeddingsRequestSchema = z
  .object({
    model: modelField,
    input: z.union([text, list(text, { least: 1 })]).describe("One text or several."),
  })
  .meta({ id: "EmbeddingsRequest" });

export const embeddingsAnswerSchema = z
  .object({
    model: z.string(),
    embeddings: z.array(z.array(z.number())).describe("One L2-normalized vector per text, in order."),
    dimensions: z.int().describe("Length of each vector."),
    total_tokens: z.int().describe("Tokens of all texts."),
  })
  .meta({ id: "EmbeddingsAnswer" });

export function toEmbedRequest(body: z.output<typeof embeddingsRequestSchema>): EmbedRequest {
  return {
    model: body.model ?? undefined,
    input: typeof body.input === "string" ? [body.input] : body.input,
  };
}

export function toEmbeddingsAnswer(answer: EmbedAnswer): z.output<typeof embeddingsAnswerSchema> {
  return {
    model: answer.model,
    embeddings: answer.vectors,
    dimensions: answer.vectors[0]?.length ?? 0,
    total_tokens: answer.totalTokens,
  };
}
