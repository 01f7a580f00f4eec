import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import { ignored, modelName, refused } from "../../http/input/known-fields.ts";
import type { RerankAnswer, RerankRequest } from "../../inference/inference.ts";

const documentSchema = z.union([z.string(), z.object({ text: z.string() })]);

/** POST /v1/rerank, in the format that Jina, Cohere and llama.cpp's server share. Unknown fields are ignored. */
export const rerankRequestSchema = z
  .object({
    model: modelName.nullish().describe("Name of the reranker model. Default: the daemon's default model."),
    query: z.string().min(1).describe("Search query."),
    documents: list(documentSchema, { least: 1 }).describe("Texts, or objects with a text field."),
    top_n: z.int().min(1).nullish().describe("Return only this many of the best results. Default: all."),
    return_documents: z.boolean().nullish().describe("Return the documents too. Default: false."),
    rank_fields: refused("send each document as one text that contains the fields to rank by"),
    max_chunks_per_doc: refused("documents are scored whole; send the part that is to be scored"),
    max_tokens_per_doc: refused("documents are scored whole; send the part that is to be scored"),
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
          relevance_score: z.number().describe("0 to 1; comparable within one answer."),
          document: z.object({ text: z.string() }).optional(),
        }),
      )
      .describe("Most relevant first."),
    usage: z
      .object({ prompt_tokens: z.int(), total_tokens: z.int() })
      .describe("Read by clients of Jina and llama.cpp."),
    meta: z
      .object({ tokens: z.object({ input_tokens: z.int(), output_tokens: z.literal(0) }) })
      .describe("The same counts, read by clients of Cohere."),
  })
  .meta({ id: "Rerank" });

export function toRerankRequest({ model, query, documents }: Rerank): RerankRequest {
  return { model: model ?? undefined, query, documents: documents.map(textOf) };
}

export function toRerank(
  id: string,
  { model, scores, totalTokens }: RerankAnswer,
  { documents, top_n: most, return_documents: withTexts }: Rerank,
): z.output<typeof rerankSchema> {
  const ranked = scores
    .map((score, index) => ({ index, relevance_score: sigmoid(score) }))
    .toSorted((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, most ?? scores.length);
  return {
    id,
    object: "list",
    model,
    results: ranked.map(({ index, relevance_score }) => {
      const document = documents[index];
      return withTexts && document !== undefined
        ? { index, relevance_score, document: { text: textOf(document) } }
        : { index, relevance_score };
    }),
    usage: { prompt_tokens: totalTokens, total_tokens: totalTokens },
    meta: { tokens: { input_tokens: totalTokens, output_tokens: 0 } },
  };
}

function textOf(document: z.output<typeof documentSchema>): string {
  return typeof document === "string" ? document : document.text;
}

/** Rerankers return logits; the API's scores are probabilities. */
function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}
