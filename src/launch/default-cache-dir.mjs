// @ts-check
import os from "node:os";
import path from "node:path";
import { homeFolder } from "./home-folder.mjs";
import { canHaveFolder, ownTemporaryFolder } from "./own-folder.mjs";

/**
 * The cache folder if none is configured. It is created only if it is not the usual one.
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string}
 */
export function defaultCacheDir(env = process.env) {
  return findCacheDir(env).folder;
}

/**
 * The cache folder if none is configured: where the platform keeps caches, otherwise a private folder in the temporary
 * directory.
 * @param {NodeJS.ProcessEnv} [env]
 * @param {(env: NodeJS.ProcessEnv) => string | undefined} [findUsual]
 * @param {readonly string[]} [parents] where everybody may write
 * @returns {{ folder: string, problem?: string }} with a sentence, for the log, when it is not the usual one
 */
export function findCacheDir(env = process.env, findUsual = usualCacheDir, parents) {
  const usual = findUsual(env);
  if (usual !== undefined && (process.platform === "win32" || canHaveFolder(usual))) return { folder: usual };
  const own = ownTemporaryFolder(parents);
  if (own === undefined) return { folder: usual ?? path.join(os.tmpdir(), "daybreak") };
  const reason = usual === undefined ? "this account has no home folder" : `${usual} cannot be used`;
  return {
    folder: own,
    problem: `What is downloaded is kept in ${own}, which the system may empty, because ${reason}: set SERVICE_CACHE_DIR to a folder that this account may write to.`,
  };
}

/**
 * Where the platform keeps a user's caches; undefined for an account without a home.
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
