import path from "node:path";
import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { listNames } from "../../files/file-operations.ts";
import { tryJson } from "../../json/json-values.ts";
import { realPathInside } from "../hub/cache/repo-cache.ts";
import { modelfileNotes } from "../modelfile/parameters.ts";
import { parameterLines, parseInstructions, quote } from "../modelfile/parse-instructions.ts";
import { readSettings } from "../modelfile/read-settings.ts";
import { isPlainPart } from "../names/name-rules.ts";
import { type FolderContents, type FoundModel, type SkippedModel, readSmallFile } from "./found-model.ts";

const DEFAULT_HOST = "registry.ollama.ai";
const DEFAULT_NAMESPACE = "library";
/** Maximum manifests that are read; stores have dozens. */
const MAX_MANIFESTS = 10_000;

const layerSchema = z.object({ mediaType: z.string(), digest: z.string() });
const manifestSchema = z.object({
  config: layerSchema.optional(),
  /** null: no layers. */
  layers: z.array(layerSchema).nullable(),
});
type Layer = z.output<typeof layerSchema>;

/** Common prefix of the media types of layers. */
const LAYER_PREFIX = "application/vnd.ollama.image.";

/**
 * Reads Ollama's folder of models: `manifests/<host>/<namespace>/<model>/<tag>` list layers, which are
 * `blobs/sha256-<hex>`.
 * @param folder its real path
 */
export async function readOllamaStore(folder: string): Promise<FolderContents> {
  const models: FoundModel[] = [];
  const skipped: SkippedModel[] = [];
  for (const [host, namespace, model, tag] of await listManifests(folder)) {
    const file = path.join(folder, "manifests", host, namespace, model, tag);
    const name = shortName(host, namespace, `${model}:${tag}`);
    const preferredName =
      host === DEFAULT_HOST && namespace !== DEFAULT_NAMESPACE
        ? `${namespace}-${model}:${tag}`
        : `${model}:${tag}`;
    try {
      models.push({ name, preferredName, ...(await readModel(folder, file)) });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      skipped.push({ name, reason: error.message });
    }
  }
  return { models, skipped };
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

/** Returns the name that Ollama displays. */
function shortName(host: string, namespace: string, model: string): string {
  if (host !== DEFAULT_HOST) return `${host}/${namespace}/${model}`;
  return namespace === DEFAULT_NAMESPACE ? model : `${namespace}/${model}`;
}

async function readModel(folder: string, file: string): Promise<Omit<FoundModel, "name" | "preferredName">> {
  const manifest = parseManifest(await readSmallFile(folder, file));
  const layers = manifest.layers ?? [];
  const blob = async ({ digest }: Layer): Promise<string> => await blobPath(folder, digest);
  const layersOf = (...kinds: string[]): Layer[] =>
    layers.filter(({ mediaType }) => kinds.some((kind) => mediaType === LAYER_PREFIX + kind));
  const [weights, ...otherWeights] = layersOf("model");
  if (!weights) throw new ServiceError("invalid_model_file", noWeightsReason(layers));
  if (otherWeights.length > 0)
    throw new ServiceError(
      "invalid_model_file",
      "it has several files of weights, which only Ollama can join",
    );
  const [projector] = layersOf("projector");
  const read = async (layer: Layer): Promise<string> => await readSmallFile(folder, await blob(layer));
  const texts = async (...kinds: string[]): Promise<string[]> =>
    await Promise.all(layersOf(...kinds).map(read));
  return {
    files: [await blob(weights)],
    projector: projector && (await blob(projector)),
    adapters: await Promise.all(layersOf("adapter").map(blob)),
    ...ollamaSettings({
      // The first versions of Ollama named this layer "prompt".
      template: (await texts("template", "prompt")).at(-1),
      system: (await texts("system")).at(-1),
      parameters: (await texts("params")).at(-1),
      messages: (await texts("messages")).at(-1),
      licenses: await texts("license"),
      config: manifest.config?.digest ? await read(manifest.config) : undefined,
      hasDraft: layersOf("draft").length > 0,
    }),
  };
}

function noWeightsReason(layers: readonly Layer[]): string {
  return layers.some(({ mediaType }) => mediaType === `${LAYER_PREFIX}tensor`)
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

interface OllamaTexts {
  readonly template: string | undefined;
  readonly system: string | undefined;
  /** JSON: values by PARAMETER name. */
  readonly parameters: string | undefined;
  readonly messages: string | undefined;
  readonly licenses: readonly string[];
  /** JSON with the names of renderer and parser. */
  readonly config: string | undefined;
  readonly hasDraft: boolean;
}

const parametersSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
);
const messagesSchema = z.array(
  z.object({ role: z.enum(["system", "user", "assistant"]), content: z.string().default("") }),
);
const configSchema = z.object({
  renderer: z.string().optional(),
  parser: z.string().optional(),
  requires: z.string().optional(),
});

/** Note on a draft model, without which answers are the same. */
const DRAFT_NOTE =
  "DRAFT is left out: an import brings no draft model; DRAFT in a Modelfile of yours can name one.";

/** Converts the settings of an Ollama model to lines of a Modelfile, and leaves out invalid ones with a note. */
function ollamaSettings(texts: OllamaTexts): { settings: string[]; notes: string[] } {
  const notes: string[] = [];
  const settings: string[] = [];
  const addLines = (directive: string, lines: () => readonly string[]): void => {
    try {
      for (const line of lines()) {
        readSettings(parseInstructions(line));
        settings.push(line);
      }
    } catch (error) {
      if (!(error instanceof ServiceError || error instanceof SyntaxError || error instanceof z.ZodError))
        throw error;
      const reason =
        error instanceof ServiceError
          ? error.message.replace(/^Modelfile, line \d+: /, "")
          : "it is damaged.";
      notes.push(`${directive} is left out: ${reason}`);
    }
  };
  // A damaged config is ignored, because its fields have no effect in Daybreak.
  const { renderer, parser, requires } = configSchema.safeParse(tryJson(texts.config ?? "{}")).data ?? {};
  if (renderer === undefined) addLines("TEMPLATE", () => textLines("TEMPLATE", texts.template));
  else if (texts.template) notes.push("TEMPLATE is left out: Ollama does not use it beside RENDERER.");
  addLines("SYSTEM", () => textLines("SYSTEM", texts.system));
  addLines("PARAMETER", () => {
    const entries = Object.entries(parametersSchema.parse(JSON.parse(texts.parameters ?? "{}")));
    for (const [name, value] of entries) addLines(`PARAMETER ${name}`, () => parameterLines(name, value));
    return [];
  });
  addLines("MESSAGE", () =>
    messagesSchema
      .parse(JSON.parse(texts.messages ?? "[]"))
      .map(({ role, content }) => `MESSAGE ${role} ${quote(content)}`),
  );
  addLines("RENDERER", () => textLines("RENDERER", renderer));
  addLines("PARSER", () => textLines("PARSER", parser));
  addLines("REQUIRES", () => textLines("REQUIRES", requires));
  addLines("LICENSE", () => texts.licenses.flatMap((license) => textLines("LICENSE", license)));
  if (texts.hasDraft) notes.push(DRAFT_NOTE);
  return { settings, notes: [...notes, ...modelfileNotes(settings.join("\n"))] };
}

function textLines(directive: string, text: string | undefined): string[] {
  return text ? [`${directive} ${quote(text)}`] : [];
}
