// @ts-check
import module from "node:module";
import path from "node:path";
import { defaultCacheDir } from "./default-cache-dir.mjs";

/**
 * Lets Node keep what it compiles of the program, in the user's own cache folder (Node's default is a folder that all
 * users of the machine can write): every start but the first takes half the time. NODE_COMPILE_CACHE and
 * NODE_DISABLE_COMPILE_CACHE count as with any program. Where the folder cannot be written, nothing is kept.
 * @param {NodeJS.ProcessEnv} [env]
 */
export function keepCompiledCode(env = process.env) {
  // Known before the program is loaded, so neither a flag nor the configuration file is heeded.
  const cacheDir = env["SERVICE_CACHE_DIR"] || defaultCacheDir(env);
  module.enableCompileCache?.(path.join(cacheDir, "code"));
}
