// @ts-check
import { existsSync } from "node:fs";

/**
 * Finds a module of the program: TypeScript in the repository, JavaScript in the published package, where Node does not
 * strip types.
 * @param {string} name path without its ending, such as "../cli/main"
 * @param {string | URL} launcher file to which the path is relative
 * @param {(file: URL) => boolean} [exists]
 * @returns {URL | undefined}
 */
export function findModule(name, launcher, exists = existsSync) {
  return [".ts", ".js"].map((ending) => new URL(name + ending, launcher)).find((file) => exists(file));
}
