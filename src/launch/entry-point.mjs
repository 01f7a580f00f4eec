// @ts-check
import { existsSync } from "node:fs";

/**
 * Where the program begins: the TypeScript sources in the repository, the built JavaScript in the published
 * package (where Node would refuse to strip types).
 * @param {string | URL} launcher the file from which to look
 * @param {(file: URL) => boolean} [exists]
 * @returns {URL | undefined}
 */
export function findEntryPoint(launcher, exists = existsSync) {
  return ["../cli/main.ts", "../cli/main.js"]
    .map((file) => new URL(file, launcher))
    .find((file) => exists(file));
}
