import { z } from "zod";
import { mapInTimeSlices } from "../../async/timers.ts";
import { list, tokenList } from "../../http/input/bounded-lists.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { longJson } from "../../http/streaming/stream-response.ts";
import type { EmbedAnswer, EmbedRequest } from "../../inference/inference.ts";
import type { TokenText } from "../../inference/tokens.ts";
import type { Services } from "../services.ts";
import { modelField, optional } from "../../http/input/common-fields.ts";

// Tokenize and detokenize have the same paths, requests and answers as llama.cpp's server, plus `model`.

const tag = "Tokens";
/**
 * Batch size that keeps a time slice short, so that other requests are not delayed. A long text has a million tokens.
 */
const PIECES_PER_SLICE = 4096;
const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const tokenizeRequestSchema = z
  .object({
    model: modelField,
    content: z.string().describe("Text to tokenize."),
    add_special: optional(
      z.boolean(),
      "Add the special tokens around the text that the model's vocabulary defines, such as BOS. Default: false.",
    ),
    parse_special: optional(
      z.boolean(),
      "Parse special tokens in the text instead of treating them as plain text. Default: true.",
    ),
    with_pieces: optional(z.boolean(), "Return the text of each token. Default: false."),
  })
  .meta({ id: "TokenizeRequest" });

const pieceSchema = z.object({
  id: z.int(),
  piece: z
    .union([z.string(), z.array(z.int())])
    .describe("Text of the token, or its bytes if they are not valid UTF-8."),
});

export const tokensSchema = z
  .object({ tokens: z.union([z.array(z.int()), z.array(pieceSchema)]) })
  .meta({ id: "Tokens" });

const detokenizeRequestSchema = z
  .object({ model: modelField, tokens: tokenList().describe("Token IDs.") })
  .meta({ id: "DetokenizeRequest" });

const contentSchema = z
  .object({ content: z.string().describe("The text, with special tokens written out.") })
  .meta({ id: "DetokenizedContent" });

export function tokenizeRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/tokenize",
    tag,
    summary: "Tokenize a text",
    description: "Uses llama.cpp's tokenizer and does not wait for a slot.",
    body: tokenizeRequestSchema,
    answers: [{ description: "The token IDs, with texts on request.", schema: tokensSchema }],
    async handle(context, { body }) {
      const options = { addSpecial: body.add_special ?? false, parseSpecial: body.parse_special ?? true };
      const { signal } = context.req.raw;
      const model = body.model ?? undefined;
      const tokens = await inference.tokenize({ model, text: body.content, options }, signal);
      if (!body.with_pieces) return longJson({ tokens: [...tokens] });
      const pieces = await inference.pieces({ model, tokens }, signal);
      return longJson({ tokens: await mapInTimeSlices(pieces, PIECES_PER_SLICE, toWirePiece) });
    },
  });
}

export function detokenizeRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/detokenize",
    tag,
    summary: "Detokenize tokens",
    body: detokenizeRequestSchema,
    answers: [{ description: "The text.", schema: contentSchema }],
    async handle(context, { body }) {
      const { model, tokens } = body;
      const content = await inference.detokenize(
        { model: model ?? undefined, tokens },
        context.req.raw.signal,
      );
      return context.json({ content });
    },
  });
}

function toWirePiece({ id, bytes }: TokenText): z.output<typeof pieceSchema> {
  try {
    return { id, piece: DECODER.decode(bytes) };
  } catch {
    return { id, piece: [...bytes] };
  }
}

const text = z.string().min(1, { error: "must not be empty" });

export const embeddingsRequestSchema = z
  .object({
    model: modelField,
    input: z.union([text, list(text, { min: 1 })]).describe("One text or several."),
  })
  .meta({ id: "EmbeddingsRequest" });

export const embeddingsAnswerSchema = z
  .object({
    model: z.string(),
    embeddings: z.array(z.array(z.number())).describe("One L2-normalized vector per text, in order."),
    dimensions: z.int().describe("Length of each vector."),
    total_tokens: z.int().describe("Total number of tokens in the texts."),
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
