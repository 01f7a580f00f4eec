import { z } from "zod";

const contextSourceSchema = z
  .enum(["request", "modelfile", "configuration", "default", "trained", "automatic", "memory"])
  .describe(
    "Origin of context_size: the load request, PARAMETER num_ctx, models.context_size, or the default of POST /api/models/load; trained: the trained context size; automatic: the limit of the automatic choice; memory: a smaller one that fits in memory.",
  );

const capabilitiesSchema = z.object({
  vision: z.boolean(),
  tools: z.boolean(),
  thinking: z.boolean(),
  json: z.boolean(),
});

const sourceSchema = z
  .enum(["shipped", "hub", "file", "modelfile", "fleet"])
  .describe("Origin of the model, which determines what deleting it does.");

const purposeSchema = z.enum(["generate", "embed", "rerank"]);

const notesSchema = z
  .array(z.string())
  .describe("Sentences about instructions of the Modelfile that have no effect.");

const modelFields = {
  alias: z.string().describe("Name of the model."),
  path: z.string().describe("Path of the GGUF file or its first shard."),
  parameters: z.int().describe("Number of weights."),
  context_size: z.int().describe("Context size in tokens: current, or used when it is loaded."),
  context_source: contextSourceSchema.optional(),
  gpu_layers: z.int().describe("Layers on the GPU: current, or used when it is loaded."),
  is_default: z.boolean(),
  active_requests: z.int(),
  state: z.enum(["available", "downloading", "loading", "loaded", "unloading"]),
  progress: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe("Progress of the download; until it ends, unknown fields are 0 or empty."),
  source: sourceSchema,
  from: z
    .string()
    .optional()
    .describe(
      "The hub spec it was pulled from, the model it was created from, or the machines of the fleet that have it; during a download, the requested name.",
    ),
  size_bytes: z.int().describe("Total size of its files."),
  quantization: z.string().describe('For example "Q4_K_M".'),
  modified_at: z.string().describe("Last change of its files, ISO 8601."),
  capabilities: capabilitiesSchema.optional().describe("Absent while it is not on disk."),
  audio_input: z.literal(true).optional().describe("It accepts audio: its projector has an audio encoder."),
  purpose: purposeSchema.optional().describe("Purpose; absent while it is not on disk."),
  license: z.string().optional().describe("License named in the GGUF file, such as apache-2.0."),
  memory_bytes: z.int().optional().describe("Resident memory of its engine, when loaded."),
  expires_at: z.string().optional().describe("Time at which it will be unloaded if idle, ISO 8601."),
  gpu_memory_bytes: z.int().optional().describe("GPU memory reserved for it, when loaded."),
  slots: z.int().optional().describe("Number of concurrent requests, when loaded."),
  last_used_at: z.string().optional().describe("Time of the last request, ISO 8601, when loaded."),
};

export const modelListEntrySchema = z.object(modelFields).meta({ id: "Model" });

export const modelDetailSchema = z
  .object({
    ...modelFields,
    architecture: z.string(),
    vocab_size: z.int(),
    capabilities: capabilitiesSchema,
    trained_context_size: z.int().describe("Trained context size in tokens."),
    embedding_size: z.int().describe("Length of its embedding vectors."),
    block_count: z.int(),
    purpose: purposeSchema,
    name: z.string().optional().describe("Name in the GGUF header."),
    files: z.array(z.string()).describe("All shards in order."),
    projector: z.string().optional().describe("Vision projector."),
    draft: z.string().optional().describe("Draft model."),
    adapters: z
      .array(
        z.object({
          id: z.int().describe("Value of `id` in the field lora of requests."),
          name: z.string().describe("Value of `name` in the field lora."),
          path: z.string(),
          scale: z.number().describe("Scale for requests without lora."),
        }),
      )
      .describe("LoRA adapters."),
    system: z.string().optional().describe("System prompt of its Modelfile."),
    template: z
      .string()
      .optional()
      .describe("Chat template in Jinja, from its Modelfile, otherwise from the GGUF file."),
    settings: z
      .record(z.string(), z.union([z.number(), z.string(), z.array(z.string())]))
      .describe("PARAMETERs of its Modelfile by name; stop is a list."),
    load_settings: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .describe(
        "Load settings from the load request, its Modelfile and the configuration, by the names of POST /api/models/load. Includes speculation, unless it is auto and the model has no draft model.",
      ),
    messages: z
      .array(z.object({ role: z.enum(["system", "user", "assistant"]), content: z.string() }))
      .optional()
      .describe("Initial messages of its chats: MESSAGEs of its Modelfile."),
    license: z.string().optional().describe("License from its Modelfile, otherwise from the GGUF file."),
    notes: notesSchema.optional(),
  })
  .meta({ id: "ModelDetail" });

export const modelListSchema = z.object({ models: z.array(modelListEntrySchema) });

export const pullResultSchema = z.object({
  status: z.literal("success"),
  model: z.string(),
  repo: z.string().describe("Repository on the hub; empty for a model shipped with the daemon."),
  size_bytes: z.int(),
});

export const pullLineSchema = z.union([
  z.object({
    status: z.literal("downloading"),
    progress: z.number().min(0).max(1),
    total_bytes: z.int(),
    downloaded_bytes: z.int(),
    note: z
      .string()
      .optional()
      .describe("Reason why the download waits, and the time of the next attempt; or its source."),
  }),
  z.object({ status: z.literal("verifying") }),
  z.object({ status: z.literal("success"), model: z.string() }),
]);
export type PullLine = z.infer<typeof pullLineSchema>;

export const loadResultSchema = z.object({
  status: z.literal("loaded"),
  alias: z.string(),
  parameters: z.int(),
  context_size: z.int(),
  context_source: contextSourceSchema.optional(),
  gpu_layers: z.int(),
});

export const defaultResultSchema = z.object({ status: z.literal("default"), alias: z.string() });

export const unloadResultSchema = z.object({ status: z.literal("unloaded"), alias: z.string() });
export const deleteResultSchema = z.object({
  status: z.literal("deleted"),
  alias: z.string(),
  source: sourceSchema,
});

export const createResultSchema = z.object({
  status: z.literal("created"),
  alias: z.string(),
  notes: notesSchema.optional(),
});

export const copyResultSchema = z.object({ status: z.literal("copied"), alias: z.string() });

export const modelfileSchema = z.object({
  alias: z.string(),
  modelfile: z.string().describe("A Modelfile that recreates this model."),
});

export const quantizeResultSchema = z.object({
  status: z.literal("success"),
  model: z.string(),
  quantization: z.string(),
  size_bytes: z.int().describe("Size of the new file."),
  source_bytes: z.int().describe("Size of the source's weights."),
  bits_per_weight: z.number(),
  fallback_tensors: z
    .int()
    .describe("Tensors with a fallback type, because their row size is not a multiple of the block size."),
});

export const quantizeLineSchema = z.union([
  z.object({
    status: z.literal("quantizing"),
    progress: z.number().min(0).max(1),
    completed_bytes: z.int().describe("Bytes written to the new file."),
    total_bytes: z.int(),
  }),
  quantizeResultSchema,
]);
export type QuantizeLine = z.infer<typeof quantizeLineSchema>;

const importedNameField = z.string().describe("Name in the source folder.");
const bytes = z.int().min(0);

const importedSchema = z.object({
  status: z
    .enum(["imported", "updated", "present"])
    .describe("present: already imported, and unchanged since."),
  name: importedNameField,
  alias: z.string().describe("Name of the model here."),
  files: z
    .enum(["cloned", "linked", "copied", "in place"])
    .describe(
      "Storage of its files: clones or links, which take no space and remain when the other program deletes the model; copies; or in place.",
    ),
  size_bytes: bytes,
  notes: z
    .array(z.string())
    .optional()
    .describe("Sentences about settings that were dropped or have no effect."),
});
const skippedSchema = z.object({
  status: z.literal("skipped"),
  name: importedNameField,
  reason: z.string().describe("Reason why it cannot be used, without a period."),
});
const outcomeSchema = z.union([importedSchema, skippedSchema]);
export type ImportOutcome = z.infer<typeof outcomeSchema>;

export const importResultSchema = z.object({
  status: z.literal("success"),
  folder: z.string().describe("Source folder."),
  models: z.array(outcomeSchema),
});

export const importLineSchema = z.union([
  z.object({
    status: z.literal("reading"),
    folder: z.string(),
    models: z.int().describe("Number of models to import."),
  }),
  z.object({
    status: z.literal("copying"),
    name: importedNameField,
    copied_bytes: bytes,
    total_bytes: bytes,
  }),
  importedSchema,
  skippedSchema,
  z.object({ status: z.literal("success") }),
]);
export type ImportLine = z.infer<typeof importLineSchema>;

export const modelFilesSchema = z.object({
  alias: z.string(),
  files: z.array(
    z.object({
      role: z.enum(["model", "projector", "adapter"]),
      name: z.string().describe("File name without the folder."),
      size_bytes: z.int(),
      sha256: z.string().describe("SHA-256 in hexadecimal; also the ETag of the file."),
      scale: z.number().optional().describe("Strength of an adapter."),
      url: z.string().describe("Path to download the file from this server."),
    }),
  ),
  modelfile: z.string().describe("A Modelfile that recreates this model."),
});
export type ModelFile = z.infer<typeof modelFilesSchema>["files"][number];
