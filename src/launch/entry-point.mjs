// @ts-check
import { existsSync } from "node:fs";

/**
 * Where the program begins: the TypeScript sources in the repository, the built JavaScript in the published
 * package (which has no src/cli, and where Node would refuse to strip types).
 * @param {URL} packageFolder with a slash at its end
 * @param {(file: URL) => boolean} [exists]
 * @returns {URL | undefined}
 */
export function findEntryPoint(packageFolder, exists = existsSync) {
  return ["src/cli/main.ts", "dist/cli/main.js"]
    .map((file) => new URL(file, packageFolder))
    .find((file) => exists(file));
}
