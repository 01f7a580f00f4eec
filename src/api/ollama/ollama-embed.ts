import { z } from "zod";
import { optional } from "../../http/input/common-fields.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { mapVectors } from "../answer-fields.ts";
import { shortenVector } from "../../inference/embeddings.ts";
import type { EmbedAnswer, EmbedRequest } from "../../inference/inference.ts";
import type { Model } from "../../models/model.ts";
import { nanoseconds } from "./ollama-answer.ts";
import { keepAliveField, modelField } from "./ollama-fields.ts";
import { optionsField, toResidency } from "./ollama-options.ts";

/** POST /api/embed of the Ollama API. Unknown fields are ignored. */
export const embedRequestSchema = z
  .object({
    model: modelField,
    input: optional(
      z.union([z.string(), list(z.string())]),
      "One text or several. Empty: only load the model; in a list, an empty text is embedded if the model's vocabulary has tokens for it.",
    ),
    dimensions: optional(
      z.int().min(1),
      "Truncate the vectors to this many dimensions; for models with Matryoshka embeddings.",
    ),
    keep_alive: keepAliveField,
    options: optionsField,
    truncate: optional(
      z.boolean(),
      "Truncate texts that exceed the context; false: refuse them. Default: true.",
    ),
  })
  .meta({ id: "OllamaEmbedRequest" });
type Embed = z.output<typeof embedRequestSchema>;

export const embedAnswerSchema = z
  .object({
    model: z.string().describe("Model name in the request."),
    embeddings: z.array(z.array(z.number())).describe("L2-normalized vectors, in the order of the texts."),
    total_duration: z.int().describe("Total nanoseconds."),
    load_duration: z.int().describe("Nanoseconds until the model was loaded."),
    prompt_eval_count: z.int().describe("Total number of tokens in the texts."),
  })
  .meta({ id: "OllamaEmbedAnswer" });

/** POST /api/embeddings, the older route, for one text. */
export const embeddingsRequestSchema = z
  .object({
    model: modelField,
    prompt: optional(z.string(), "The text. Empty: only load the model."),
    keep_alive: keepAliveField,
    options: optionsField,
  })
  .meta({ id: "OllamaEmbeddingsRequest" });

export const embeddingsAnswerSchema = z
  .object({ embedding: z.array(z.number()).describe("L2-normalized vector; empty without a text.") })
  .meta({ id: "OllamaEmbeddingsAnswer" });

export function toEmbedRequest(body: Omit<Embed, "dimensions">, model: Model): EmbedRequest {
  // A single empty text only loads the model; in a list, the client expects a vector for it.
  const texts =
    typeof body.input === "string" ? [body.input].filter((text) => text !== "") : (body.input ?? []);
  return {
    model: model.alias,
    input: texts,
    truncate: body.truncate ?? true,
    residency: toResidency(body, model),
  };
}

/** @throws ServiceError invalid_parameter if `dimensions` exceeds the model's */
export async function toEmbedAnswer(
  { vectors, totalTokens, loadMs }: EmbedAnswer,
  body: Embed,
  totalMs: number,
): Promise<z.output<typeof embedAnswerSchema>> {
  const { model, dimensions } = body;
  return {
    model,
    embeddings:
      dimensions == null ? vectors : await mapVectors(vectors, (vector) => shortenVector(vector, dimensions)),
    total_duration: nanoseconds(totalMs),
    load_duration: nanoseconds(loadMs),
    prompt_eval_count: totalTokens,
  };
}
