import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import { realPathInside } from "../hub/cache/repo-cache.ts";
import { MAX_MODELFILE_LENGTH } from "../modelfile/parse-instructions.ts";

/** A model in a folder of another program. All paths are absolute and lead to files inside that folder. */
export interface FoundModel {
  /** Name in its program. */
  readonly name: string;
  /** Preferred name in Daybreak, which may be taken or invalid. */
  readonly preferredName: string;
  /** All shards in order. */
  readonly files: readonly [string, ...string[]];
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
  /** Valid lines of a Modelfile, except those about files. */
  readonly settings: readonly string[];
  /** Sentences about settings that could not be imported. */
  readonly notes: readonly string[];
}

export interface SkippedModel {
  readonly name: string;
  /** A sentence without its final period. */
  readonly reason: string;
}

export interface FolderContents {
  readonly models: readonly FoundModel[];
  readonly skipped: readonly SkippedModel[];
}

interface ModelPaths {
  /** The first shard. */
  readonly model: string;
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
}

/** Writes the Modelfile of a found model with the lines of its settings. */
export function modelfileOf({ model, projector, adapters }: ModelPaths, settings: readonly string[]): string {
  const lines = [
    `FROM ${model}`,
    ...adapters.map((adapter) => `ADAPTER ${adapter}`),
    ...(projector === undefined ? [] : [`VISION_PROJECTOR ${projector}`]),
    ...settings,
  ];
  return `${lines.join("\n")}\n`;
}

/**
 * Reads a text file in a folder of models, such as a template. A link must lead to a file inside that folder.
 * @throws ServiceError model_file_not_found, or invalid_model_file if it is longer than any Modelfile
 */
export async function readSmallFile(realFolder: string, file: string): Promise<string> {
  const real = await realPathInside(realFolder, file);
  if (real === undefined) throw missing();
  try {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    await using handle = await open(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await handle.stat();
    if (!stats.isFile()) throw missing();
    if (stats.size > MAX_MODELFILE_LENGTH)
      throw new ServiceError("invalid_model_file", "one of its texts is far too long");
    return await handle.readFile("utf8");
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    rethrowExhaustion(error);
    throw missing(error);
  }
}

function missing(cause?: unknown): ServiceError {
  return new ServiceError("model_file_not_found", "one of its files is missing, or cannot be read", {
    cause,
  });
}
