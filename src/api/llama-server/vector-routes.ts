import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { list, textItems, tokenList } from "../../http/input/bounded-lists.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { longJson } from "../../http/streaming/stream-response.ts";
import { mapVectors, rank } from "../answer-fields.ts";
import type { Services } from "../services.ts";
import { promptText } from "./completion-request.ts";
import { invalidField, modelField, optional } from "../../http/input/common-fields.ts";

const tag = "llama-server";
/** Value of embd_normalize for no normalization; the engine only returns normalized vectors. */
const UNNORMALIZED = -1;
const EUCLIDEAN = 2;
/** Maximum p of a p-norm. Components are at most 1, and their larger powers are practically 0. */
const MAX_POWER = 64;

const text = z.string().min(1, { error: "must not be empty" });
const tokens = tokenList({ min: 1 });
const texts = z.union([text, tokens, list(z.union([text, tokens]), { min: 1 })]);

const embeddingRequestSchema = z
  .object({
    model: modelField,
    content: optional(texts, "One text or several, each as a string or as token ids."),
    input: optional(texts, "Another name of content."),
    embd_normalize: optional(
      z.int().min(UNNORMALIZED).max(MAX_POWER),
      "Norm of the vectors. 0: scale the largest component to 32760; 1: taxicab; 2: Euclidean; higher: that p-norm; -1 (none) is refused. Default: 2.",
    ),
  })
  .meta({ id: "LlamaServerEmbeddingRequest" });

const embeddingsSchema = z
  .array(z.object({ index: z.int(), embedding: z.array(z.array(z.number())).describe("One vector.") }))
  .meta({ id: "LlamaServerEmbeddings" });

/** POST /embedding or /embeddings. */
export function embeddingRoute({ inference }: Services, path: "/embedding" | "/embeddings"): Route {
  return defineRoute({
    method: "POST",
    path,
    tag,
    summary: "Create embeddings",
    body: embeddingRequestSchema,
    answers: [{ description: "One vector per text.", schema: embeddingsSchema }],
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const norm = body.embd_normalize ?? EUCLIDEAN;
      if (norm === UNNORMALIZED) {
        throw new ServiceError(
          "unsupported_feature",
          "embd_normalize: vectors are always normalized; leave it out, or send 0 or more.",
          { param: "embd_normalize" },
        );
      }
      const model = body.model ?? undefined;
      const items = body.content ?? body.input;
      if (items == null) throw invalidField("content", "is missing.");
      const input: string[] = [];
      for (const item of textItems(items)) input.push(await promptText(inference, model, item, signal));
      const { vectors } = await inference.embed({ model, input }, signal);
      return longJson(
        await mapVectors(vectors, (vector, index) => ({
          index,
          embedding: [normalizeVector(vector, norm)],
        })),
      );
    },
  });
}

const documentList = list(z.string(), { min: 1 });

const rerankRequestSchema = z
  .object({
    model: modelField,
    query: z.string().min(1).describe("Search query."),
    documents: optional(documentList, "Texts."),
    texts: optional(documentList, "Texts, for an answer in the format of TEI (Text Embeddings Inference)."),
    return_text: optional(z.boolean(), "With texts: also return the texts. Default: false."),
    top_n: optional(z.int().min(1), "Return only this many of the best results. Default: all."),
  })
  .meta({ id: "LlamaServerRerankRequest" });

const scoreField = z.number().describe("Raw logit of the model.");
const rerankSchema = z
  .union([
    z.object({
      model: z.string(),
      object: z.literal("list"),
      usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
      results: z
        .array(z.object({ index: z.int(), relevance_score: scoreField }))
        .describe("Most relevant first."),
    }),
    z
      .array(z.object({ index: z.int(), score: scoreField, text: z.string().optional() }))
      .describe("If the request has texts."),
  ])
  .meta({ id: "LlamaServerRerank" });

/** POST /rerank or /reranking. */
export function rerankRoute({ inference }: Services, path: "/rerank" | "/reranking"): Route {
  return defineRoute({
    method: "POST",
    path,
    tag,
    summary: "Rank documents by their relevance to a query",
    description: "Requires a reranker model. POST /v1/rerank does the same with scores from 0 to 1.",
    body: rerankRequestSchema,
    answers: [{ description: "The documents' positions and scores.", schema: rerankSchema }],
    async handle(context, { body }) {
      const isTei = body.texts != null;
      const documents = body.texts ?? body.documents;
      if (documents == null) {
        throw invalidField("documents", "is missing.");
      }
      const request = { model: body.model ?? undefined, query: body.query, documents };
      const { model, scores, totalTokens } = await inference.rerank(request, context.req.raw.signal);
      const ranked = rank(scores, body.top_n ?? undefined);
      if (isTei) {
        const returnsText = body.return_text ?? false;
        return context.json(
          ranked.map((each) => ({ ...each, ...(returnsText && { text: documents[each.index] }) })),
        );
      }
      return context.json({
        model,
        object: "list",
        usage: { prompt_tokens: totalTokens, total_tokens: totalTokens },
        results: ranked.map(({ index, score }) => ({ index, relevance_score: score })),
      });
    },
  });
}

/** Largest component with embd_normalize 0, chosen by llama.cpp so that components fit in 16 bits. */
const MAX_PART = 32_760;

/**
 * Scales a vector as llama.cpp's server does.
 * @param norm 0: by the largest component; otherwise p of the p-norm that becomes 1
 */
function normalizeVector(vector: readonly number[], norm: number): number[] {
  const sizes = vector.map(Math.abs);
  const length =
    norm === 0
      ? sizes.reduce((most, size) => Math.max(most, size), 0) / MAX_PART
      : sizes.reduce((sum, size) => sum + size ** norm, 0) ** (1 / norm);
  return vector.map((part) => (length > 0 ? part / length : 0));
}
