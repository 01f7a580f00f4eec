import { z } from "zod";
import { list, tokenList } from "../../http/input/bounded-lists.ts";
import { mapInTimeSlices } from "../../async/time-slices.ts";
import { encodeBase64 } from "../../inference/base64.ts";
import type { EmbedAnswer, EmbedRequest, PromptFromTokensRequest } from "../../inference/inference.ts";
import { shortenVector } from "../../inference/shorten-vector.ts";
import { ignored, modelName } from "../../http/input/known-fields.ts";

/** Few enough that one time slice does not hold up other requests. */
const VECTORS_PER_SLICE = 64;

const text = z.string().min(1, { error: "must not be empty" });

const tokens = tokenList({ least: 1 });

/** POST /v1/embeddings. Unknown fields are ignored. */
export const embeddingsRequestSchema = z
  .object({
    model: modelName.nullish().describe("Model name. Default: the daemon's default model."),
    input: z
      .union([text, list(text, { least: 1 }), tokens, list(tokens, { least: 1 })])
      .describe("One text or several, each as a string or as token IDs."),
    encoding_format: z
      .enum(["float", "base64"])
      .nullish()
      .describe("base64: 32-bit floats, little-endian. Default: float."),
    dimensions: z
      .int()
      .min(1)
      .nullish()
      .describe("Truncate vectors to this many dimensions; for models trained for it (Matryoshka)."),
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

/** @param promptFromTokens finds the text that tokenizes to the given tokens */
export async function toEmbedRequest(
  { model: name, input }: EmbeddingsRequest,
  promptFromTokens: (request: PromptFromTokensRequest) => Promise<string>,
): Promise<EmbedRequest> {
  const model = name ?? undefined;
  const items = inputItems(input);
  const texts = items.map(async (item, at) =>
    typeof item === "string"
      ? item
      : await promptFromTokens({ model, tokens: item, param: items.length === 1 ? "input" : `input.${at}` }),
  );
  return { model, input: await Promise.all(texts) };
}

function inputItems(input: EmbeddingsRequest["input"]): (string | number[])[] {
  if (typeof input === "string") return [input];
  const ids = input.filter((item) => typeof item === "number");
  return ids.length > 0 ? [ids] : input.filter((item) => typeof item !== "number");
}

/** @throws ServiceError invalid_parameter when `dimensions` is more than the model has */
export async function toEmbeddings(
  { model, vectors, totalTokens }: EmbedAnswer,
  { encoding_format: format, dimensions }: EmbeddingsRequest,
): Promise<z.output<typeof embeddingsSchema>> {
  const data = await mapInTimeSlices(vectors, VECTORS_PER_SLICE, (vector, index) => {
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

/** Little-endian, like every machine that can run an engine. */
function toBase64(vector: readonly number[]): string {
  return encodeBase64(new Uint8Array(Float32Array.from(vector).buffer));
}
