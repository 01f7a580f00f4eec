import type { z } from "zod";
import type { Model } from "../../models/model.ts";
import type { modelDetailSchema, modelListEntrySchema } from "./model-schemas.ts";

/** A model as GET /api/models lists it. */
export function modelListEntry(model: Model): z.infer<typeof modelListEntrySchema> {
  const from = origin(model);
  return {
    alias: model.alias,
    path: model.path,
    parameters: model.gguf.parameters,
    context_size: model.contextSize,
    gpu_layers: model.gpuLayers,
    is_default: model.isDefault,
    active_requests: model.activeRequests,
    state: model.state,
    source: model.source.kind,
    ...(from !== undefined && { from }),
    size_bytes: model.gguf.fileSize,
    quantization: model.gguf.quantisation,
    modified_at: new Date(model.modifiedAt).toISOString(),
    ...(model.memoryBytes !== undefined && { memory_bytes: model.memoryBytes }),
    ...(model.expiresAt !== undefined && { expires_at: new Date(model.expiresAt).toISOString() }),
  };
}

/** A model as GET /api/models/<name> shows it. */
export function modelDetail(model: Model): z.infer<typeof modelDetailSchema> {
  const { gguf } = model;
  return {
    ...modelListEntry(model),
    architecture: gguf.architecture,
    vocab_size: gguf.vocabSize,
    capabilities: { ...model.capabilities },
    trained_context_size: gguf.contextLength,
    embedding_size: gguf.embeddingLength,
    block_count: gguf.blockCount,
    purpose: gguf.purpose,
    ...(gguf.name !== undefined && { name: gguf.name }),
    files: [...model.files],
    ...(model.projector !== undefined && { projector: model.projector }),
    ...(model.settings.system !== undefined && { system: model.settings.system }),
  };
}

function origin(model: Model): string | undefined {
  if (model.source.kind === "hub") return model.source.spec;
  return model.source.kind === "file" ? undefined : model.source.base;
}
