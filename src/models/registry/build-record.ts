import { stat } from "node:fs/promises";
import { throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import { shardFiles } from "../gguf/shard-files.ts";
import type { ModelSource } from "../model.ts";
import { realModelPath, type ModelFile } from "../paths/model-file-path.ts";
import { NO_SETTINGS, type ModelRecord } from "./model-record.ts";

export interface RecordParts {
  readonly alias: string;
  readonly source: ModelSource;
  /** Any shard; the others are found by their names. */
  readonly path: string;
  readonly projector: string | undefined;
  /** Folders that the files must really lie in; none: anywhere. */
  readonly within: readonly string[];
}

/**
 * Makes the record of a model from its files, looking at each of them. Throws when a file is missing, not allowed
 * or not a model (`model_file_not_found`, `path_not_allowed`, `invalid_model_file`).
 */
export async function buildRecord(parts: RecordParts, inspect: InspectGguf): Promise<ModelRecord> {
  const { alias, source, within } = parts;
  const [first, ...others] = shardFiles(parts.path).map((path): ModelFile => ({ path, within }));
  if (!first) throw new ServiceError("model_file_not_found", "The model has no files.");
  const real = await Promise.all([first, ...others].map(realModelPath));
  const gguf = await inspect(real);
  if (gguf.auxiliary) {
    throw new ServiceError(
      "invalid_model_file",
      `${parts.path} is an ${gguf.auxiliary}, not a model by itself.`,
    );
  }
  const times = await Promise.all(real.map(async (file) => (await stat(file)).mtimeMs));
  return {
    alias,
    source,
    files: [first, ...others],
    projector: parts.projector === undefined ? undefined : { path: parts.projector, within },
    adapters: [],
    gguf,
    settings: NO_SETTINGS,
    digest: undefined,
    modifiedAt: Math.floor(Math.max(...times)),
  };
}

/**
 * Like buildRecord, for lists: a file that cannot be used is left out, and `onSkip` is told why.
 */
export async function tryRecord(
  parts: RecordParts,
  inspect: InspectGguf,
  onSkip: (error: unknown) => void,
): Promise<ModelRecord[]> {
  try {
    return [await buildRecord(parts, inspect)];
  } catch (error) {
    throwExhaustion(error);
    onSkip(error);
    return [];
  }
}
