// @ts-check
import os from "node:os";
import path from "node:path";

/**
 * The cache folder when none is configured: where the platform keeps caches.
 * @param {NodeJS.ProcessEnv} [env]
 * @param {string} [platform] as in process.platform
 * @returns {string}
 */
export function defaultCacheDir(env = process.env, platform = process.platform) {
  const home = os.homedir();
  if (platform === "win32")
    return path.join(env["LOCALAPPDATA"] || path.join(home, "AppData", "Local"), "daybreak");
  if (platform === "darwin") return path.join(home, "Library", "Caches", "daybreak");
  return path.join(env["XDG_CACHE_HOME"] || path.join(home, ".cache"), "daybreak");
}
