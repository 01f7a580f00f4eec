// @ts-check
import module from "node:module";
import path from "node:path";
import { defaultCacheDir } from "./default-cache-dir.mjs";
import { resolvePath } from "./home-folder.mjs";

const FLAG = "--cache-dir";

/**
 * Turns on Node's compile cache in the user's cache folder (Node's default folder is writable by all users): every start
 * but the first takes half the time. NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE work as usual. If the folder is not
 * writable, nothing is cached.
 */
export function enableCompileCache() {
  module.enableCompileCache?.(compileCacheFolder(process.argv.slice(2), process.env));
}

/**
 * Returns the folder of the compile cache. It is needed before the configuration file can be read, so a `cache_dir` in
 * that file is ignored.
 * @param {readonly string[]} args of the command line
 * @param {NodeJS.ProcessEnv} env
 * @returns {string}
 */
export function compileCacheFolder(args, env) {
  const named = cacheDirFlag(args) || env["SERVICE_CACHE_DIR"];
  const folder = named ? resolvePath(named, process.cwd()) : undefined;
  return path.join(folder ?? defaultCacheDir(env), "code");
}

/**
 * @param {readonly string[]} args
 * @returns {string | undefined}
 */
function cacheDirFlag(args) {
  const at = args.findLastIndex((arg) => arg === FLAG || arg.startsWith(`${FLAG}=`));
  return args[at] === FLAG ? args[at + 1] : args[at]?.slice(FLAG.length + 1);
}
