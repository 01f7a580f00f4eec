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
