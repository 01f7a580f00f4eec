import type { z } from "zod";
import { nameLoadSettings } from "../../config/load-settings.ts";
import type { Model } from "../../models/model.ts";
import type { Download } from "../../models/hub/hub-types.ts";
import { listParameters, modelfileNotes } from "../../models/modelfile/parameters.ts";
import { licenseText, parseInstructions } from "../../models/modelfile/parse-instructions.ts";
import type { modelDetailSchema, modelListEntrySchema } from "../wire/models.ts";

type ListEntry = z.infer<typeof modelListEntrySchema>;
/** Entry of a model on disk, whose capabilities and purpose are known. */
type EntryOnDisk = ListEntry & {
  capabilities: NonNullable<ListEntry["capabilities"]>;
  purpose: NonNullable<ListEntry["purpose"]>;
};

/** Converts a model to an entry of GET /api/models. */
export function modelListEntry(model: Model): EntryOnDisk {
  const { vision, tools, thinking, json } = model.capabilities;
  return {
    alias: model.alias,
    path: model.path,
    parameters: model.gguf.parameters,
    context_size: model.contextSize,
    context_source: model.contextSource,
    gpu_layers: model.gpuLayers,
    is_default: model.isDefault,
    active_requests: model.activeRequests,
    state: model.state,
    source: model.source.kind,
    from: origin(model),
    size_bytes: model.gguf.fileSize,
    quantization: model.gguf.quantization,
    modified_at: new Date(model.modifiedAt).toISOString(),
    capabilities: { vision, tools, thinking, json },
    ...(model.capabilities.audio && { audio_input: true }),
    purpose: model.gguf.purpose,
    license: model.gguf.license,
    memory_bytes: model.memoryBytes,
    ...(model.expiresAt !== undefined && { expires_at: new Date(model.expiresAt).toISOString() }),
    gpu_memory_bytes: model.gpuMemoryBytes,
    slots: model.slots,
    ...(model.lastUsedAt !== undefined && { last_used_at: new Date(model.lastUsedAt).toISOString() }),
  };
}

/** Adds the progress of downloads to their entries, and an entry for each model that is not on disk yet. */
export function withDownloads(list: readonly ListEntry[], downloads: readonly Download[]): ListEntry[] {
  const byAlias = new Map(list.map((entry) => [entry.alias, entry]));
  for (const { name, alias, downloadedBytes, totalBytes } of downloads) {
    const progress = totalBytes > 0 ? Math.min(1, downloadedBytes / totalBytes) : 0;
    byAlias.set(alias, { ...(byAlias.get(alias) ?? placeholder(name, alias, totalBytes)), progress });
  }
  return [...byAlias.values()];
}

/** Entry of a model that is being downloaded, of which only the name is known. */
function placeholder(name: string, alias: string, totalBytes: number): ListEntry {
  return {
    alias,
    path: "",
    parameters: 0,
    context_size: 0,
    gpu_layers: 0,
    is_default: false,
    active_requests: 0,
    state: "downloading",
    source: "hub",
    from: name,
    size_bytes: totalBytes,
    quantization: "",
    modified_at: new Date().toISOString(),
  };
}

/**
 * Converts a model to the answer of GET /api/models/<name>.
 * @param modelfile a Modelfile that recreates it
 */
export function modelDetail(model: Model, modelfile: string): z.infer<typeof modelDetailSchema> {
  const { gguf } = model;
  const notes = modelfileNotes(modelfile);
  return {
    ...modelListEntry(model),
    architecture: gguf.architecture,
    vocab_size: gguf.vocabSize,
    trained_context_size: gguf.contextLength,
    embedding_size: gguf.embeddingLength,
    block_count: gguf.blockCount,
    name: gguf.name,
    files: [...model.files],
    projector: model.projector,
    draft: model.draft,
    adapters: model.adapters.map(({ path, scale, name }, id) => ({ id, name, path, scale })),
    system: model.settings.system,
    template: model.settings.template ?? gguf.chatTemplate,
    settings: settings(model),
    load_settings: {
      ...nameLoadSettings(model.loadSettings),
      ...(model.speculation !== undefined && { speculation: model.speculation }),
    },
    messages: model.settings.messages && [...model.settings.messages],
    license: licenseText(parseInstructions(modelfile)) ?? gguf.license,
    ...(notes.length > 0 && { notes }),
  };
}

/** PARAMETERs by name; only `stop` can have several values. */
function settings(model: Model): Record<string, number | string | string[]> {
  const { stop } = model.settings;
  const single = listParameters({ ...model.settings, stop: [] });
  return { ...Object.fromEntries(single), ...(stop.length > 0 && { stop: [...stop] }) };
}

function origin(model: Model): string | undefined {
  if (model.source.kind === "hub") return model.source.spec;
  if (model.source.kind === "fleet") return model.source.machines.join(", ");
  return model.source.kind === "file" ? undefined : model.source.base;
}
