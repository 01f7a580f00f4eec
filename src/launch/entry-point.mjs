// @ts-check
import { existsSync } from "node:fs";

/**
 * The program's entry file: TypeScript in the repository, JavaScript in the published package, where Node refuses to
 * strip types.
 * @param {string | URL} launcher the file from which to look
 * @param {(file: URL) => boolean} [exists]
 * @returns {URL | undefined}
 */
export function findEntryPoint(launcher, exists = existsSync) {
  return ["../cli/main.ts", "../cli/main.js"]
    .map((file) => new URL(file, launcher))
    .find((file) => exists(file));
}
