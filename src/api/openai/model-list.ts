import { z } from "zod";
import type { Model } from "../../models/model.ts";

/** Context size. Servers of this API have no common name for it, and each client looks for another one. */
const contextField = z.int().describe("Context of one request in tokens, now or when it is loaded.");

export const openaiModelSchema = z
  .object({
    id: z.string(),
    parent: z
      .string()
      .optional()
      .describe("For a name that selects a LoRA adapter: the model with the adapter."),
    object: z.literal("model"),
    created: z.int().describe("When its files last changed, in Unix seconds."),
    owned_by: z.string().describe("Owner of its hub repository, or daybreak."),
    context_length: contextField,
    max_context_length: contextField,
    max_model_len: contextField,
    meta: z
      .object({
        n_ctx_train: z.int().describe("Trained context size in tokens; 0: unknown."),
        n_vocab: z.int().describe("Tokens in its vocabulary."),
        n_embd: z.int().describe("Length of its embedding vectors."),
        n_params: z.int().describe("Number of weights."),
        size: z.int().describe("Total size of its files in bytes."),
      })
      .describe("Properties from its GGUF file."),
  })
  .meta({ id: "OpenAIModel" });

export const openaiModelListSchema = z
  .object({ object: z.literal("list"), data: z.array(openaiModelSchema) })
  .meta({ id: "OpenAIModelList" });

export function toModel({
  alias,
  source,
  modifiedAt,
  contextSize,
  gguf,
}: Model): z.output<typeof openaiModelSchema> {
  const owner = source.kind === "hub" ? source.repo.split("/", 1)[0] : undefined;
  return {
    id: alias,
    object: "model",
    created: Math.floor(modifiedAt / 1000),
    owned_by: owner ?? "daybreak",
    context_length: contextSize,
    max_context_length: contextSize,
    max_model_len: contextSize,
    meta: {
      n_ctx_train: gguf.contextLength,
      n_vocab: gguf.vocabSize,
      n_embd: gguf.embeddingLength,
      n_params: gguf.parameters,
      size: gguf.fileSize,
    },
  };
}

export function toModelList(models: readonly Model[]): z.output<typeof openaiModelListSchema> {
  const present = models.filter(({ state }) => state !== "downloading");
  return { object: "list", data: present.flatMap(toNames) };
}

/** Entries of a model: one under its own name, and one per adapter under the name that selects the adapter. */
function toNames(model: Model): z.output<typeof openaiModelSchema>[] {
  const base = toModel(model);
  const { id: parent } = base;
  const adapters = model.adapters.map(({ name }) =>
    Object.assign({}, base, { id: `${parent}:${name}`, parent }),
  );
  return [base, ...adapters];
}
