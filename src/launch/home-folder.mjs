// @ts-check
import os from "node:os";
import path from "node:path";

/**
 * The user's home folder. Undefined for an account that has none: the system does not know it, as in a container that
 * runs under a number of its own, and HOME is not set.
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
