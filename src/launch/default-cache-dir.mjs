// @ts-check
import os from "node:os";
import path from "node:path";
import { homeFolder } from "./home-folder.mjs";
import { canUseFolder, privateTemporaryFolder } from "./own-folder.mjs";

/**
 * Returns the cache folder if none is configured. Creates it only if it is not the usual one.
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string}
 */
export function defaultCacheDir(env = process.env) {
  return findCacheDir(env).folder;
}

/**
 * Returns the cache folder if none is configured: in the platform's folder for caches, or else a private folder in the
 * temporary directory.
 * @param {NodeJS.ProcessEnv} [env]
 * @param {(env: NodeJS.ProcessEnv) => string | undefined} [findUsual]
 * @param {readonly string[]} [parents] folders in which all users may write
 * @returns {{ folder: string, problem?: string }} with a sentence, for the log, when it is not the usual one
 */
export function findCacheDir(env = process.env, findUsual = usualCacheDir, parents) {
  const usual = findUsual(env);
  if (usual !== undefined && (process.platform === "win32" || canUseFolder(usual))) return { folder: usual };
  const own = privateTemporaryFolder(parents);
  if (own === undefined) return { folder: usual ?? path.join(os.tmpdir(), "daybreak") };
  const reason = usual === undefined ? "this account has no home folder" : `${usual} cannot be used`;
  return {
    folder: own,
    problem: `What is downloaded is kept in ${own}, which the system may empty, because ${reason}: set SERVICE_CACHE_DIR to a folder that this account may write to.`,
  };
}

/**
 * Returns the platform's folder for a user's caches; undefined for an account without a home.
 * @param {NodeJS.ProcessEnv} env
 * @param {string} [platform] as in process.platform
 * @param {string} [home]
 * @returns {string | undefined}
 */
export function usualCacheDir(env, platform = process.platform, home = homeFolder()) {
  const named = platform === "win32" ? env["LOCALAPPDATA"] : env["XDG_CACHE_HOME"];
  if (named && platform !== "darwin") return path.join(named, "daybreak");
  if (home === undefined) return undefined;
  return path.join(home, ...cachesInHome(platform), "daybreak");
}

/** @param {string} platform */
function cachesInHome(platform) {
  if (platform === "win32") return ["AppData", "Local"];
  return platform === "darwin" ? ["Library", "Caches"] : [".cache"];
}
