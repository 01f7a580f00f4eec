import path from "node:path";
import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { listNames } from "../../files/list-names.ts";
import { realPathInside } from "../hub/cache/repo-cache.ts";
import { isPlainPart } from "../names/name-rules.ts";
import type { FolderContents, FoundModel, LeftOut } from "./found-model.ts";
import { ollamaSettings } from "./ollama-settings.ts";
import { readSmallFile } from "./read-small-file.ts";

const HOST = "registry.ollama.ai";
const NAMESPACE = "library";
/** People have dozens. */
const MAX_MANIFESTS = 10_000;

const layerSchema = z.object({ mediaType: z.string(), digest: z.string() });
const manifestSchema = z.object({
  config: layerSchema.optional(),
  /** Ollama writes null for none. */
  layers: z.array(layerSchema).nullable(),
});
type Layer = z.output<typeof layerSchema>;

/** What the layers of a manifest are. */
const LAYER = "application/vnd.ollama.image.";

/**
 * Reads Ollama's folder of models: `manifests/<host>/<namespace>/<model>/<tag>` list layers, which are `blobs/sha256-<hex>`.
 * @param folder its real path
 */
export async function readOllamaStore(folder: string): Promise<FolderContents> {
  const models: FoundModel[] = [];
  const leftOut: LeftOut[] = [];
  for (const [host, namespace, model, tag] of await listManifests(folder)) {
    const file = path.join(folder, "manifests", host, namespace, model, tag);
    const name = shortName(host, namespace, `${model}:${tag}`);
    const wish =
      host === HOST && namespace !== NAMESPACE ? `${namespace}-${model}:${tag}` : `${model}:${tag}`;
    try {
      models.push({ name, wish, ...(await readModel(folder, file)) });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      leftOut.push({ name, reason: error.message });
    }
  }
  return { models, leftOut };
}

type ManifestPath = [host: string, namespace: string, model: string, tag: string];

async function listManifests(folder: string): Promise<ManifestPath[]> {
  const found: ManifestPath[] = [];
  const root = path.join(folder, "manifests");
  const children = async (...parts: string[]): Promise<string[]> =>
    (await listNames(path.join(root, ...parts))).filter((name) => isPlainPart(name)).toSorted();
  for (const host of (await listNames(root))
    .filter((name) => /^[\w.:-]+$/.test(name) && name !== "..")
    .toSorted())
    for (const namespace of await children(host))
      for (const model of await children(host, namespace))
        for (const tag of await children(host, namespace, model)) {
          if (found.length >= MAX_MANIFESTS) return found;
          found.push([host, namespace, model, tag]);
        }
  return found;
}

/** As Ollama shows it. */
function shortName(host: string, namespace: string, model: string): string {
  if (host !== HOST) return `${host}/${namespace}/${model}`;
  return namespace === NAMESPACE ? model : `${namespace}/${model}`;
}

async function readModel(folder: string, file: string): Promise<Omit<FoundModel, "name" | "wish">> {
  const manifest = parseManifest(await readSmallFile(folder, file));
  const layers = manifest.layers ?? [];
  const blob = async ({ digest }: Layer): Promise<string> => await blobPath(folder, digest);
  const of = (...kinds: string[]): Layer[] =>
    layers.filter(({ mediaType }) => kinds.some((kind) => mediaType === LAYER + kind));
  const [weights, ...more] = of("model");
  if (!weights) throw new ServiceError("invalid_model_file", whyWithoutWeights(layers));
  if (more.length > 0)
    throw new ServiceError(
      "invalid_model_file",
      "it has several files of weights, which only Ollama can join",
    );
  const [projector] = of("projector");
  const read = async (layer: Layer): Promise<string> => await readSmallFile(folder, await blob(layer));
  const texts = async (...kinds: string[]): Promise<string[]> => await Promise.all(of(...kinds).map(read));
  return {
    files: [await blob(weights)],
    projector: projector && (await blob(projector)),
    adapters: await Promise.all(of("adapter").map(blob)),
    ...ollamaSettings({
      // Its first versions called it a prompt.
      template: (await texts("template", "prompt")).at(-1),
      system: (await texts("system")).at(-1),
      parameters: (await texts("params")).at(-1),
      messages: (await texts("messages")).at(-1),
      licenses: await texts("license"),
      config: manifest.config?.digest ? await read(manifest.config) : undefined,
      hasDraft: of("draft").length > 0,
    }),
  };
}

function whyWithoutWeights(layers: readonly Layer[]): string {
  return layers.some(({ mediaType }) => mediaType === `${LAYER}tensor`)
    ? "it is in Safetensors, not GGUF"
    : "it has no weights on this machine";
}

function parseManifest(text: string): z.output<typeof manifestSchema> {
  try {
    return manifestSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ServiceError("invalid_model_file", "its manifest is damaged", { cause });
  }
}

async function blobPath(folder: string, digest: string): Promise<string> {
  const hex = /^sha256[:-]([0-9a-f]{64})$/i.exec(digest)?.[1]?.toLowerCase();
  const file = path.join(folder, "blobs", `sha256-${hex}`);
  if (hex !== undefined && (await realPathInside(folder, file)) !== undefined) return file;
  throw new ServiceError("model_file_not_found", "one of its files is missing, or a link out of the folder");
}
