import { z } from "zod";
import type { RerankAnswer, RerankRequest } from "../../inference/inference.ts";

const documentSchema = z.union([z.string(), z.object({ text: z.string() })]);

/** POST /v1/rerank, in the shape that Jina and Cohere share. Unknown fields are ignored. */
export const rerankRequestSchema = z
  .object({
    model: z.string().nullish().describe("Name of the reranker. Default: the daemon's default model."),
    query: z.string().min(1).describe("What is looked for."),
    documents: z.array(documentSchema).min(1).describe("Texts, or objects that hold a text."),
    top_n: z.int().min(1).nullish().describe("Return only so many, the best. Default: all."),
    return_documents: z.boolean().nullish().describe("Send the texts back too. Default: false."),
  })
  .meta({ id: "RerankRequest" });
type Rerank = z.output<typeof rerankRequestSchema>;

export const rerankSchema = z
  .object({
    model: z.string(),
    results: z
      .array(
        z.object({
          index: z.int().describe("Position in the request."),
          relevance_score: z.number().describe("0 to 1; comparable within one answer."),
          document: z.object({ text: z.string() }).optional(),
        }),
      )
      .describe("The most relevant first."),
    usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
  })
  .meta({ id: "Rerank" });

export function toRerankRequest({ model, query, documents }: Rerank): RerankRequest {
  return { model: model ?? undefined, query, documents: documents.map(textOf) };
}

export function toRerank(
  { model, scores, totalTokens }: RerankAnswer,
  { documents, top_n: most, return_documents: withTexts }: Rerank,
): z.output<typeof rerankSchema> {
  const ranked = scores
    .map((score, index) => ({ index, relevance_score: sigmoid(score) }))
    .toSorted((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, most ?? scores.length);
  return {
    model,
    results: ranked.map(({ index, relevance_score }) => {
      const document = documents[index];
      return withTexts && document !== undefined
        ? { index, relevance_score, document: { text: textOf(document) } }
        : { index, relevance_score };
    }),
    usage: { prompt_tokens: totalTokens, total_tokens: totalTokens },
  };
}

function textOf(document: z.output<typeof documentSchema>): string {
  return typeof document === "string" ? document : document.text;
}

/** Rerankers give logits; the API's scores are probabilities. */
function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}
