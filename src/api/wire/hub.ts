import { z } from "zod";

const repoFields = {
  repo: z.string().describe("owner/repository."),
  gated: z
    .boolean()
    .describe("Access must be requested on the repository's page, and HUB_TOKEN must be set."),
  task: z.string().optional().describe('Task according to the hub, such as "text-generation".'),
};

export const hubSearchSchema = z
  .object({
    repos: z
      .array(
        z.object({
          ...repoFields,
          downloads: z.number().describe("In the last month."),
          likes: z.number(),
          updated_at: z.string().optional().describe("ISO 8601."),
        }),
      )
      .describe("Repositories, most downloaded first."),
  })
  .meta({ id: "HubSearch" });

const offerSchema = z.object({
  spec: z.string().describe("Name for POST /api/models/pull."),
  file: z.string().describe("Path of the file or its first shard."),
  shards: z.int().describe("Number of files."),
  quantization: z.string().optional().describe("Quantization according to the file name."),
  size_bytes: z.int().describe("Total size of all shards."),
  partial_bytes: z.int().describe("Bytes on disk from an interrupted download, which the next pull resumes."),
  on_disk: z.string().optional().describe("Name of the model, if it has been pulled already."),
  fits: z.boolean().describe("Estimate: it could be loaded on this machine if no other model were loaded."),
  needed_bytes: z.int().describe("Estimated memory of its engine, at least the size of its files."),
  context_size: z.int().describe("Context size in tokens that the estimate assumes."),
  reason: z.string().optional().describe("Why it does not fit."),
  gpu: z
    .object({
      layers: z.int().describe("Number of layers that fit on the GPU."),
      all_layers: z.int().describe("Estimated number of all layers."),
      bytes: z.int().describe("GPU memory that they need."),
    })
    .optional()
    .describe("Estimated GPU offload; absent: none."),
});

export const hubFilesSchema = z
  .object({
    ...repoFields,
    page: z.string().describe("Address of the repository's page on the hub."),
    parameters: z.int().optional().describe("Number of weights, if the hub reports it."),
    trained_context_size: z
      .int()
      .optional()
      .describe("Trained context size in tokens, if the hub reports it."),
    estimate: z.string().describe("Sentence that explains the basis of the estimates."),
    models: z.array(offerSchema).describe("Models, one per quantization, smallest first."),
  })
  .meta({ id: "HubFiles" });

/** An entry of configs/defaults.toml and of GET /api/defaults. */
export const defaultModelSchema = z
  .object({
    name: z.string().describe("Name for POST /api/defaults/<name>/use."),
    description: z.string(),
    size_hint: z.string().describe("Download size, human-readable."),
    tags: z.array(z.string()),
    from: z.string().describe("Hub spec: hf:owner/repository[:file or quantization]."),
    has_thinking: z.boolean(),
    has_vision: z.boolean(),
    has_tools: z.boolean(),
  })
  .meta({ id: "DefaultModel" });
export type DefaultModel = z.infer<typeof defaultModelSchema>;
