import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { ServiceError, throwExhaustion } from "../../errors/service-error.ts";
import { realPathInside } from "../hub/cache/repo-cache.ts";
import { MAX_MODELFILE_LENGTH } from "../modelfile/parse-instructions.ts";

/** A model in a folder of another program. All paths are absolute, as the folder names them, and lead to files inside it. */
export interface FoundModel {
  /** What its program calls it. */
  readonly name: string;
  /** What it should be called here; it may be taken, and need not be a valid name. */
  readonly wish: string;
  /** All shards in order. */
  readonly files: readonly [string, ...string[]];
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
  /** Lines of a Modelfile, besides those about files; each is valid. */
  readonly settings: readonly string[];
  /** What of its settings could not be kept, in sentences. */
  readonly notes: readonly string[];
}

/** Something that looks like a model, and why it cannot be used. */
export interface LeftOut {
  readonly name: string;
  /** A sentence without its final period. */
  readonly reason: string;
}

/** What is in a folder of models. */
export interface FolderContents {
  readonly models: readonly FoundModel[];
  readonly leftOut: readonly LeftOut[];
}

/** Where the files of a model are. */
interface Files {
  /** The first shard. */
  readonly model: string;
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
}

/** The Modelfile of a model that was found, with the lines of its settings. */
export function modelfileOf({ model, projector, adapters }: Files, settings: readonly string[]): string {
  const lines = [
    `FROM ${model}`,
    ...adapters.map((adapter) => `ADAPTER ${adapter}`),
    ...(projector === undefined ? [] : [`VISION_PROJECTOR ${projector}`]),
    ...settings,
  ];
  return `${lines.join("\n")}\n`;
}

/**
 * Reads a text of a folder of models, such as a template, through links only to files inside it.
 * @throws ServiceError model_file_not_found, or invalid_model_file for one that is longer than any Modelfile
 */
export async function readSmallFile(realFolder: string, file: string): Promise<string> {
  const real = await realPathInside(realFolder, file);
  if (real === undefined) throw missing();
  try {
    // Opening a FIFO would wait for a writer.
    await using handle = await open(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await handle.stat();
    if (!stats.isFile()) throw missing();
    if (stats.size > MAX_MODELFILE_LENGTH)
      throw new ServiceError("invalid_model_file", "one of its texts is far too long");
    return await handle.readFile("utf8");
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throwExhaustion(error);
    throw missing(error);
  }
}

function missing(cause?: unknown): ServiceError {
  return new ServiceError("model_file_not_found", "one of its files is missing, or cannot be read", {
    cause,
  });
}
