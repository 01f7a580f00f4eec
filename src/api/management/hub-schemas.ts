import { z } from "zod";
import { modelNameSchema } from "../../http/input/common-fields.ts";

/** What people type; longer texts match no name. */
const MAX_QUERY_LENGTH = 200;
/** As many as a person reads. */
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

const common = {
  repo: z.string().describe("owner/repository."),
  gated: z
    .boolean()
    .describe("Its owner gives it only to those who ask on its page; HUB_TOKEN says who asks."),
  task: z.string().optional().describe('What the hub says it is for, such as "text-generation".'),
};

export const hubSearchQuerySchema = z.object({
  query: z.string().trim().min(1).max(MAX_QUERY_LENGTH).describe("Words, or a part of a repository's name."),
  limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT).describe("Most repositories."),
});

export const hubSearchSchema = z
  .object({
    repos: z
      .array(
        z.object({
          ...common,
          downloads: z.number().describe("In the last month."),
          likes: z.number(),
          updated_at: z.string().optional().describe("ISO 8601."),
        }),
      )
      .describe("Those downloaded most first."),
  })
  .meta({ id: "HubSearch" });

export const hubFilesQuerySchema = z.object({
  repo: z.string().min(1).max(MAX_QUERY_LENGTH).describe("owner/repository."),
});

const offerSchema = z.object({
  spec: z.string().describe("Name for POST /api/models/pull."),
  file: z.string().describe("The file, or the first shard."),
  shards: z.int().describe("Number of files."),
  quantization: z.string().optional().describe("From the name of the file."),
  size_bytes: z.int().describe("Of all shards."),
  partial_bytes: z.int().describe("On disk of an interrupted download; the next pull resumes it."),
  on_disk: z.string().optional().describe("Name of the model, if it has been pulled already."),
  fits: z
    .boolean()
    .describe("Whether it could be loaded on this machine, if no other model were: an estimate."),
  needed_bytes: z.int().describe("Memory of its engine: an estimate, at least its files."),
  context_size: z.int().describe("Tokens of context that the estimate is for."),
  reason: z.string().optional().describe("Why it does not fit."),
  gpu: z
    .object({
      layers: z.int().describe("Layers that fit."),
      all_layers: z.int().describe("Layers that it probably has."),
      bytes: z.int().describe("Memory of the GPU that those need."),
    })
    .optional()
    .describe("What would be on the GPU; absent: nothing."),
});

export const hubFilesSchema = z
  .object({
    ...common,
    page: z.string().describe("Address of the repository's page on the hub."),
    parameters: z.int().optional().describe("Number of weights, if the hub says it."),
    trained_context_size: z.int().optional().describe("Tokens, if the hub says it."),
    estimate: z.string().describe("What the estimates are based on, in a sentence."),
    models: z.array(offerSchema).describe("One for each quantization, the smallest first."),
  })
  .meta({ id: "HubFiles" });

export const discardRequestSchema = z.object({
  name: modelNameSchema.describe("Alias or hub spec, as it was pulled."),
});
export const discardResultSchema = z.object({
  status: z.literal("discarded"),
  name: z.string(),
  freed_bytes: z.int(),
});
