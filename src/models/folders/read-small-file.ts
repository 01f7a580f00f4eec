import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { realPathInside } from "../hub/cache/repo-cache.ts";
import { MAX_MODELFILE_LENGTH } from "../modelfile/parse-instructions.ts";

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
