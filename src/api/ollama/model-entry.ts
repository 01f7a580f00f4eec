import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../../models/model.ts";
import type { Models } from "../../models/models.ts";
import { invalidField } from "../../http/input/common-fields.ts";

/** Namespace of names without an owner; clients may write it out. */
const LIBRARY = /^(?:registry\.ollama\.ai\/)?library\//;
/** Prefix of a hub repository in client requests. */
const HUB_ADDRESS = /^(?:hf\.co|huggingface\.co)\//i;
const LATEST = ":latest";

/** Converts a client's model name to the daemon's: `hf.co/owner/repo:Q4_0` is `hf:owner/repo:Q4_0`. */
export function toModelName(name: string): string {
  const plain = name.replace(LIBRARY, "");
  if (!HUB_ADDRESS.test(plain)) return plain;
  const spec = plain.replace(HUB_ADDRESS, "hf:");
  return spec.endsWith(LATEST) ? spec.slice(0, -LATEST.length) : spec;
}

/** Returns a model's name in lists, where every name has a tag. */
export function toListedName(alias: string): string {
  return alias.includes(":") ? alias : alias + LATEST;
}

/** Returns the model name of a request, from `model` or, for older clients, `name`. */
export function requestedName(body: {
  model?: string | null | undefined;
  name?: string | null | undefined;
}): string {
  const name = body.model || body.name;
  if (name) return name;
  throw invalidField("model", "is required.");
}

/**
 * Finds the model that a client names.
 * @throws ServiceError model_not_found with the message that Ollama clients look for. Also for names that are invalid
 *   here, such as one with an owner, because clients then offer to pull the model.
 */
export async function findModel(models: Models, name: string): Promise<Model> {
  try {
    return await models.get(toModelName(name));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.code !== "model_not_found" && error.code !== "invalid_model_name") throw error;
    throw new ServiceError("model_not_found", `model '${name}' not found, try pulling it first`, {
      param: "model",
      cause: error,
    });
  }
}

/**
 * Expiry of a model that stays loaded. Clients show dates far ahead as "forever", and all of them can parse this one.
 */
const FOREVER = "9999-12-31T23:59:59Z";

const detailsSchema = z.object({
  parent_model: z.string().describe("Model it was created from, or empty."),
  format: z.literal("gguf"),
  family: z.string().describe("Architecture."),
  families: z.array(z.string()),
  parameter_size: z.string().describe('For example "1.2B".'),
  quantization_level: z.string().describe('For example "Q4_K_M".'),
});

const entryFields = {
  name: z.string().describe("Name with tag; `latest` if it has none."),
  model: z.string().describe("Same as name."),
  size: z.int().describe("Size in bytes."),
  digest: z
    .string()
    .describe("SHA-256 of the paths, sizes and times of the model's files and of its settings."),
  details: detailsSchema,
};

export const tagListSchema = z.object({
  models: z.array(z.object({ ...entryFields, modified_at: z.string().describe("ISO 8601.") })),
});

export const runningListSchema = z.object({
  models: z.array(
    z.object({
      ...entryFields,
      expires_at: z
        .string()
        .describe("Time at which it will be unloaded; far in the future while it is in use or stays loaded."),
      size_vram: z.int().describe("Bytes of its weights on the GPU."),
      context_length: z.int().describe("Context size in tokens."),
    }),
  ),
});

export function details(model: Model): z.output<typeof detailsSchema> {
  const { gguf, source } = model;
  return {
    parent_model: source.kind === "modelfile" ? source.base : "",
    format: "gguf",
    family: gguf.architecture,
    families: [gguf.architecture],
    parameter_size: parameterSize(gguf.parameters),
    quantization_level: gguf.quantization,
  };
}

/** Returns the models on disk, without those being downloaded, because clients offer every listed model. */
export async function toTagList(models: readonly Model[]): Promise<z.output<typeof tagListSchema>> {
  const complete = models.filter(({ state }) => state !== "downloading");
  return {
    models: await Promise.all(
      complete.map(async (model) =>
        Object.assign(await entry(model, model.gguf.fileSize), {
          modified_at: new Date(model.modifiedAt).toISOString(),
        }),
      ),
    ),
  };
}

/** Returns the loaded models. */
export async function toRunningList(models: readonly Model[]): Promise<z.output<typeof runningListSchema>> {
  const loaded = models.filter(({ state }) => state === "loaded");
  return {
    models: await Promise.all(
      loaded.map(async (model) =>
        Object.assign(await entry(model, model.memoryBytes ?? model.gguf.fileSize), {
          expires_at: model.expiresAt === undefined ? FOREVER : new Date(model.expiresAt).toISOString(),
          size_vram: bytesOnGpu(model),
          context_length: model.contextSize,
        }),
      ),
    ),
  };
}

async function entry(model: Model, size: number) {
  const name = toListedName(model.alias);
  return { name, model: name, size, digest: await digest(model), details: details(model) };
}

/** Hash that changes with the model; clients compare it and show its first digits. */
function digest({ files, projector, adapters, gguf, modifiedAt, settings }: Model): Promise<string> {
  return sha256(JSON.stringify({ files, projector, adapters, size: gguf.fileSize, modifiedAt, settings }));
}

/** Returns the SHA-256 in hexadecimal. */
export async function sha256(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bytesOnGpu({ gpuLayers, gguf }: Model): number {
  if (gpuLayers <= 0) return 0;
  return Math.round(gguf.fileSize * Math.min(1, gpuLayers / Math.max(1, gguf.blockCount)));
}

/** Formats a number of weights: 7241732096 is "7.2B", 494030000 is "494.03M". */
export function parameterSize(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)}B`;
  if (parameters >= 1e6) return `${(parameters / 1e6).toFixed(2)}M`;
  if (parameters >= 1e3) return `${(parameters / 1e3).toFixed(2)}K`;
  return String(parameters);
}
