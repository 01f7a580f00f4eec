import { accessSync, constants, mkdirSync } from "node:fs";
import { writeRefusal } from "../files/write-refusal.ts";

/**
 * What to say of a cache folder that nothing can be written to: a daemon still serves what is there and what ships.
 * Undefined when it can; it is made when it is missing.
 */
export function cacheWarning(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return undefined;
  } catch (error) {
    const reason = writeRefusal(error) ?? String(error);
    return `No model can be downloaded or made, since nothing can be written to ${folder}: ${reason}. Set SERVICE_CACHE_DIR to a folder that this account may write to.`;
  }
}
