// @ts-check
import module from "node:module";
import path from "node:path";
import { defaultCacheDir } from "./default-cache-dir.mjs";
import { resolvePath } from "./resolve-path.mjs";

const FLAG = "--cache-dir";

/**
 * Lets Node keep what it compiles of the program, in the user's own cache folder (Node's default is a folder that all
 * users of the machine can write): every start but the first takes half the time. NODE_COMPILE_CACHE and
 * NODE_DISABLE_COMPILE_CACHE count as with any program. Where the folder cannot be written, nothing is kept.
 */
export function keepCompiledCode() {
  module.enableCompileCache?.(compiledCodeFolder(process.argv.slice(2), process.env));
}

/**
 * The folder is needed before the program is loaded, and with it what reads the configuration file: a `cache_dir` there
 * is not heeded.
 * @param {readonly string[]} args of the command line
 * @param {NodeJS.ProcessEnv} env
 * @returns {string}
 */
export function compiledCodeFolder(args, env) {
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
