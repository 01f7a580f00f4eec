import { z } from "zod";
import { mapVectors, rank } from "../answer-fields.ts";
import { list, textItems, tokenList } from "../../http/input/bounded-lists.ts";
import { ignored, modelName, refused, modelField, optional } from "../../http/input/common-fields.ts";
import { shortenVector } from "../../inference/embeddings.ts";
import type {
  EmbedAnswer,
  EmbedRequest,
  PromptFromTokensRequest,
  RerankAnswer,
  RerankRequest,
} from "../../inference/inference.ts";
import { encodeBase64 } from "../../inference/media-data.ts";

const text = z.string().min(1, { error: "must not be empty" });

const tokens = tokenList({ min: 1 });

/** POST /v1/embeddings. Unknown fields are ignored. */
export const embeddingsRequestSchema = z
  .object({
    model: modelField,
    input: z
      .union([text, list(text, { min: 1 }), tokens, list(tokens, { min: 1 })])
      .describe("One text or several, each as a string or as token IDs."),
    encoding_format: optional(
      z.enum(["float", "base64"]),
      "base64: little-endian 32-bit floats. Default: float.",
    ),
    dimensions: optional(
      z.int().min(1),
      "Truncate the vectors to this many dimensions; for models with Matryoshka embeddings.",
    ),
    user: ignored(),
  })
  .meta({ id: "OpenAIEmbeddingsRequest" });
type EmbeddingsRequest = z.output<typeof embeddingsRequestSchema>;

export const embeddingsSchema = z
  .object({
    object: z.literal("list"),
    data: z.array(
      z.object({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string()]).describe("L2-normalized."),
      }),
    ),
    model: z.string(),
    usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
  })
  .meta({ id: "OpenAIEmbeddings" });

/** @param promptFromTokens finds a text that is tokenized to exactly the request's tokens */
export async function toEmbedRequest(
  { model: name, input }: EmbeddingsRequest,
  promptFromTokens: (request: PromptFromTokensRequest) => Promise<string>,
): Promise<EmbedRequest> {
  const model = name ?? undefined;
  const items = textItems(input);
  const texts = items.map(async (item, at) =>
    typeof item === "string"
      ? item
      : await promptFromTokens({ model, tokens: item, param: items.length === 1 ? "input" : `input.${at}` }),
  );
  return { model, input: await Promise.all(texts) };
}

/** @throws ServiceError invalid_parameter if `dimensions` exceeds the model's */
export async function toEmbeddings(
  { model, vectors, totalTokens }: EmbedAnswer,
  { encoding_format: format, dimensions }: EmbeddingsRequest,
): Promise<z.output<typeof embeddingsSchema>> {
  const data = await mapVectors(vectors, (vector, index) => {
    const shortened = dimensions == null ? vector : shortenVector(vector, dimensions);
    return {
      object: "embedding" as const,
      index,
      embedding: format === "base64" ? toBase64(shortened) : shortened,
    };
  });
  return {
    object: "list",
    data,
    model,
    usage: { prompt_tokens: totalTokens, total_tokens: totalTokens },
  };
}

/** Encodes a vector. Every machine that can run an engine is little-endian, as the API requires. */
function toBase64(vector: readonly number[]): string {
  return encodeBase64(new Uint8Array(Float32Array.from(vector).buffer));
}

const documentSchema = z.union([z.string(), z.object({ text: z.string() })]);

/** POST /v1/rerank, in the format that Jina, Cohere and llama.cpp's server share. Unknown fields are ignored. */
export const rerankRequestSchema = z
  .object({
    model: optional(modelName, "Name of the reranker model. Default: the daemon's default model."),
    query: z.string().min(1).describe("Search query."),
    documents: list(documentSchema, { min: 1 }).describe("Texts, or objects with a text field."),
    top_n: optional(z.int().min(1), "Return only this many of the best results. Default: all."),
    return_documents: optional(z.boolean(), "Also return the documents. Default: false."),
    rank_fields: refused("send each document as one text that contains the fields to rank by"),
    max_chunks_per_doc: refused("documents are scored as a whole; send only the part to score"),
    max_tokens_per_doc: refused("documents are scored as a whole; send only the part to score"),
    truncation: ignored("documents that are too long are refused"),
    priority: ignored(),
  })
  .meta({ id: "RerankRequest" });
type Rerank = z.output<typeof rerankRequestSchema>;

export const rerankSchema = z
  .object({
    id: z.string(),
    object: z.literal("list"),
    model: z.string(),
    results: z
      .array(
        z.object({
          index: z.int().describe("Position in the request."),
          relevance_score: z.number().describe("Score from 0 to 1, comparable within one answer."),
          document: z.object({ text: z.string() }).optional(),
        }),
      )
      .describe("Most relevant first."),
    usage: z
      .object({ prompt_tokens: z.int(), total_tokens: z.int() })
      .describe("Usage for clients of Jina and llama.cpp."),
    meta: z
      .object({ tokens: z.object({ input_tokens: z.int(), output_tokens: z.literal(0) }) })
      .describe("Usage for clients of Cohere."),
  })
  .meta({ id: "Rerank" });

export function toRerankRequest({ model, query, documents }: Rerank): RerankRequest {
  return { model: model ?? undefined, query, documents: documents.map(textOf) };
}

export function toRerank(
  id: string,
  { model, scores, totalTokens }: RerankAnswer,
  { documents, top_n: limit, return_documents: withTexts }: Rerank,
): z.output<typeof rerankSchema> {
  return {
    id,
    object: "list",
    model,
    results: rank(scores.map(sigmoid), limit ?? undefined).map(({ index, score }) => {
      const document = documents[index];
      const shown = withTexts && document !== undefined ? { text: textOf(document) } : undefined;
      return { index, relevance_score: score, document: shown };
    }),
    usage: { prompt_tokens: totalTokens, total_tokens: totalTokens },
    meta: { tokens: { input_tokens: totalTokens, output_tokens: 0 } },
  };
}

function textOf(document: z.output<typeof documentSchema>): string {
  return typeof document === "string" ? document : document.text;
}

/** Converts a reranker's logit to this API's score. */
function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}
