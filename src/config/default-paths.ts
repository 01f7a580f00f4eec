import os from "node:os";
import path from "node:path";
import { defaultCacheDir } from "../launch/default-cache-dir.mjs";
import { homeFolder } from "../launch/home-folder.mjs";
import { canHaveFolder, ownTemporaryFolder } from "../launch/own-folder.mjs";

/**
 * The platform's default place for a user's configuration file, read if no other file is named. Undefined for an account
 * without a home folder.
 */
export function defaultConfigFile(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  const folder = configFolder(env, platform);
  return folder === undefined ? undefined : path.join(folder, "daybreak", "daybreak.toml");
}

function configFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string | undefined {
  const named = platform === "win32" ? env["APPDATA"] : env["XDG_CONFIG_HOME"];
  if (named && platform !== "darwin") return named;
  const home = homeFolder();
  if (home === undefined) return undefined;
  if (platform === "win32") return path.join(home, "AppData", "Roaming");
  return platform === "darwin"
    ? path.join(home, "Library", "Application Support")
    : path.join(home, ".config");
}

/** In bytes, on the systems that allow the least (macOS and the BSDs): sun_path less its final zero. */
export const LONGEST_SOCKET_PATH = 103;

/**
 * Where the IPC endpoint listens when none is configured: beside the user's other sockets where that folder can be used,
 * else in the cache folder, else, where that has too long a path, in a folder of the account's own among the temporary
 * files; never in /tmp itself.
 */
export function defaultSocket(env: NodeJS.ProcessEnv = process.env, platform = process.platform): string {
  if (platform === "win32") return `\\\\.\\pipe\\daybreak-${userName(env)}`;
  const runtimeDir = env["XDG_RUNTIME_DIR"];
  const usual =
    runtimeDir && canHaveFolder(runtimeDir)
      ? path.join(runtimeDir, "daybreak.sock")
      : path.join(defaultCacheDir(env), "run", "daybreak.sock");
  if (Buffer.byteLength(usual) <= LONGEST_SOCKET_PATH) return usual;
  const own = ownTemporaryFolder();
  return own === undefined ? usual : path.join(own, "daybreak.sock");
}

/** The system does not know every account, such as those of some services. */
function userName(env: NodeJS.ProcessEnv): string {
  try {
    return os.userInfo().username;
  } catch {
    return env["USERNAME"] || "user";
  }
}
