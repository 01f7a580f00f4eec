import { realpath, stat } from "node:fs/promises";
import nodePath from "node:path";
import { mergeLoadSettings } from "../../config/load-settings.ts";
import { ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import { withoutUndefined } from "../../json/json-values.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import { type GgufSummary, type Media, type ModelSettings, type ModelSource, NO_SETTINGS } from "../model.ts";
import type { ModelDefinition } from "../modelfile/read-modelfile.ts";
import { shardFiles } from "../names/model-file-names.ts";
import { freeName, isPlainPart } from "../names/name-rules.ts";

/** A model's file as named, and the folders its real path must be in; none: anywhere. */
export interface ModelFile {
  readonly path: string;
  readonly within: readonly string[];
}

/**
 * Returns the real path of a model's file: absolute, without symlinks, a regular file inside its allowed folders.
 * Errors do not reveal which files exist outside of those folders. Throws `path_not_allowed` or `model_file_not_found`.
 */
export async function realModelPath(file: ModelFile): Promise<string> {
  const folders = await Promise.all(file.within.map(realPathOrResolved));
  const asNamed = nodePath.resolve(file.path);
  const real = await realpath(asNamed).catch(rethrowExhaustion);
  const place = real ?? (await realPathOrResolved(nodePath.dirname(asNamed)));
  if (folders.length > 0 && !folders.some((folder) => isInside(place, folder))) {
    throw new ServiceError(
      "path_not_allowed",
      `${file.path} lies outside the folders that models may come from (models.allowed_dirs).`,
    );
  }
  if (real === undefined) throw new ServiceError("model_file_not_found", `There is no file ${asNamed}.`);
  if (!(await stat(real)).isFile()) {
    throw new ServiceError("path_not_allowed", `${asNamed} is not a regular file.`);
  }
  return real;
}

/** Returns a path without links; of one that does not exist, the absolute path. */
export async function realPathOrResolved(folder: string): Promise<string> {
  return (await realpath(folder).catch(rethrowExhaustion)) ?? nodePath.resolve(folder);
}

/** True if a path is the folder or inside it. Both are real paths. */
export function isInside(real: string, folder: string): boolean {
  const relative = nodePath.relative(folder, real);
  return relative !== ".." && !relative.startsWith(`..${nodePath.sep}`) && !nodePath.isAbsolute(relative);
}

/** A projector's file and the media that it encodes. */
export interface Projector extends ModelFile {
  readonly media: Media;
}

/** Assumption for an unreadable projector, whose error the load of its model reports. */
const ASSUMED_MEDIA: Media = { image: true, audio: false };

/** Reads which media a projector encodes. */
export async function readProjector(file: ModelFile, inspect: InspectGguf): Promise<Projector> {
  try {
    const { auxiliary, media } = await inspect([await realModelPath(file)]);
    return { ...file, media: auxiliary === "projector" ? media : ASSUMED_MEDIA };
  } catch (error) {
    rethrowExhaustion(error);
    return { ...file, media: ASSUMED_MEDIA };
  }
}

/** A model on disk: the facts that do not depend on whether it is loaded. */
export interface ModelRecord {
  readonly alias: string;
  readonly source: ModelSource;
  /** All shards in order. */
  readonly files: readonly [ModelFile, ...ModelFile[]];
  readonly projector: Projector | undefined;
  readonly adapters: readonly { readonly file: ModelFile; readonly scale: number; readonly name: string }[];
  readonly draft?: ModelFile | undefined;
  readonly gguf: GgufSummary;
  readonly settings: ModelSettings;
  /** Required SHA-256 of the GGUF file, in hexadecimal. */
  readonly digest: string | undefined;
  /** Last change of its files, in Unix milliseconds. */
  readonly modifiedAt: number;
}

/** A kind of models on disk, such as those that users have loaded by path. */
export interface RecordSource {
  /** Level of log lines about unusable models: debug if files that are no models are to be expected. */
  readonly unusableLogLevel: "warn" | "debug";
  /**
   * Returns functions that read the files of each model, by alias.
   * @param forBase true if the model is the base of another one
   */
  readers(forBase: boolean): RecordReaders | Promise<RecordReaders>;
}

export type RecordReaders = ReadonlyMap<string, () => Promise<ModelRecord>>;

interface RecordOptions extends Pick<ModelRecord, "alias" | "source"> {
  /** Any shard; the others are derived from its name. */
  readonly path: string;
  readonly projector: string | undefined;
  /** Folders that the files' real paths must be in; none: anywhere. */
  readonly within: readonly string[];
}

/**
 * Creates the record of a model from its files. Throws `model_file_not_found`, `path_not_allowed` or
 * `invalid_model_file`.
 */
export async function buildRecord(parts: RecordOptions, inspect: InspectGguf): Promise<ModelRecord> {
  const { alias, source, within } = parts;
  const [first, ...others] = shardFiles(parts.path).map((path): ModelFile => ({ path, within }));
  if (!first) throw new ServiceError("model_file_not_found", "The model has no files.");
  const real = await Promise.all([first, ...others].map(realModelPath));
  const gguf = await inspect(real);
  if (gguf.auxiliary) {
    throw new ServiceError(
      "invalid_model_file",
      `${parts.path} is ${gguf.auxiliary === "adapter" ? "an adapter" : "a projector"}, not a model by itself.`,
    );
  }
  const times = await Promise.all(real.map(async (file) => (await stat(file)).mtimeMs));
  return {
    alias,
    source,
    files: [first, ...others],
    projector: parts.projector ? await readProjector({ path: parts.projector, within }, inspect) : undefined,
    adapters: [],
    gguf,
    settings: NO_SETTINGS,
    digest: undefined,
    modifiedAt: Math.floor(Math.max(...times)),
  };
}

/**
 * Creates the record of a Modelfile. Settings that it lacks come from its base.
 * @param within folders that adapters and projectors must be in; none: anywhere
 */
export async function derivedRecord(
  { alias, source }: Pick<ModelRecord, "alias" | "source">,
  definition: ModelDefinition,
  base: ModelRecord,
  within: readonly string[],
  inspect: InspectGguf,
): Promise<ModelRecord> {
  const own = (path: string): ModelFile => ({ path, within });
  return {
    ...base,
    alias,
    source,
    projector: definition.projector
      ? await readProjector(own(definition.projector), inspect)
      : base.projector,
    adapters: nameAdapters([
      ...base.adapters,
      ...definition.adapters.map(({ path, scale, name }) => ({ file: own(path), scale, name })),
    ]),
    draft: definition.draft === undefined ? base.draft : own(definition.draft),
    settings: mergeSettings(base.settings, definition.settings),
    digest: definition.digest ?? base.digest,
  };
}

function mergeSettings(base: ModelSettings, own: ModelSettings): ModelSettings {
  return {
    ...base,
    ...withoutUndefined(own),
    sampling: { ...base.sampling, ...own.sampling },
    stop: own.stop.length > 0 ? own.stop : base.stop,
    load: mergeLoadSettings(own.load, base.load),
    capabilities: { ...base.capabilities, ...own.capabilities },
  };
}

/** Name for adapters whose file names yield none. */
const DEFAULT_NAME = "adapter";

type RecordAdapter = ModelRecord["adapters"][number];

/**
 * Gives each adapter of a model a unique name: the one that it has, or else its file's name. Names from Modelfiles take
 * precedence; a duplicate gets a number.
 */
export function nameAdapters(
  adapters: readonly (Omit<RecordAdapter, "name"> & { readonly name?: string | undefined })[],
): RecordAdapter[] {
  const named = adapters.filter(({ name }) => name !== undefined);
  const others = adapters.filter(({ name }) => name === undefined);
  const taken = new Set<string>();
  const names = new Map<object, string>();
  for (const adapter of [...named, ...others]) {
    const name = freeName(adapter.name ?? fileName(adapter.file.path), (each) => taken.has(each));
    taken.add(name);
    names.set(adapter, name);
  }
  return adapters.map((adapter) => ({ ...adapter, name: names.get(adapter) ?? DEFAULT_NAME }));
}

function fileName(file: string): string {
  const plain = nodePath
    .basename(file)
    .replace(/\.gguf$/i, "")
    .replaceAll(/[^\w.-]+/g, "-");
  return isPlainPart(plain) ? plain : DEFAULT_NAME;
}
