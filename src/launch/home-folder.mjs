// @ts-check
import os from "node:os";
import path from "node:path";

/**
 * Returns the user's home folder. Undefined for an account without one: HOME is not set and the system does not know the
 * account, as in a container with an arbitrary user ID.
 * @returns {string | undefined}
 */
export function homeFolder() {
  try {
    const home = os.homedir();
    return path.isAbsolute(home) ? home : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Resolves a path as users write it: relative paths start from `folder`, a tilde is the home folder.
 * @param {string} given
 * @param {string} folder
 * @returns {string | undefined} undefined for a tilde of an account without a home
 */
export function resolvePath(given, folder) {
  if (given === "~" || given.startsWith("~/") || given.startsWith(`~${path.sep}`)) {
    const home = homeFolder();
    return home === undefined ? undefined : path.join(home, given.slice(1));
  }
  return path.resolve(folder, given);
}
