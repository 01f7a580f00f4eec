import { accessSync, constants, mkdirSync } from "node:fs";
import { writeRefusal } from "../files/write-refusal.ts";

/**
 * The warning about a cache folder that is not writable: the daemon then serves only the models on disk. Undefined if it is
 * writable; a missing folder is created.
 */
export function cacheWarning(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return undefined;
  } catch (error) {
    const reason = writeRefusal(error) ?? String(error);
    return `Models cannot be downloaded or created, because ${folder} is not writable: ${reason}. Set SERVICE_CACHE_DIR to a folder that this account may write to.`;
  }
}
