// @ts-check
import path from "node:path";
import { homeFolder } from "./home-folder.mjs";

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
