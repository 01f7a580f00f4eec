// @ts-check
import os from "node:os";
import path from "node:path";

/**
 * A path as users write it: relative ones count from `folder`, a tilde is the home folder.
 * @param {string} given
 * @param {string} folder
 * @returns {string}
 */
export function resolvePath(given, folder) {
  if (given === "~" || given.startsWith("~/") || given.startsWith(`~${path.sep}`))
    return path.join(os.homedir(), given.slice(1));
  return path.resolve(folder, given);
}
