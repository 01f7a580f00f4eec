import os from "node:os";
import path from "node:path";
import { defaultCacheDir } from "../launch/default-cache-dir.mjs";
import { homeFolder } from "../launch/home-folder.mjs";
import { canUseFolder, privateTemporaryFolder } from "../launch/own-folder.mjs";

/**
 * Default configuration file of the platform, read if no other file is named. Undefined for an account without a home
 * folder.
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

/** Length limit of socket paths on macOS and BSD, the strictest systems: sun_path without its final zero. */
export const MAX_SOCKET_PATH_BYTES = 103;

/**
 * Default path of the IPC socket: in XDG_RUNTIME_DIR if it is usable, otherwise in the cache folder, or, if that path
 * is too long, in a private temporary folder of the account. Never in /tmp itself, where other users could create it
 * first.
 */
export function defaultSocket(env: NodeJS.ProcessEnv = process.env, platform = process.platform): string {
  if (platform === "win32") return `\\\\.\\pipe\\daybreak-${userName(env)}`;
  const runtimeDir = env["XDG_RUNTIME_DIR"];
  const preferred =
    runtimeDir && canUseFolder(runtimeDir)
      ? path.join(runtimeDir, "daybreak.sock")
      : path.join(defaultCacheDir(env), "run", "daybreak.sock");
  if (Buffer.byteLength(preferred) <= MAX_SOCKET_PATH_BYTES) return preferred;
  const temporary = privateTemporaryFolder();
  return temporary === undefined ? preferred : path.join(temporary, "daybreak.sock");
}

/** Name of the account, with a fallback for accounts that the system does not know. */
function userName(env: NodeJS.ProcessEnv): string {
  try {
    return os.userInfo().username;
  } catch {
    return env["USERNAME"] || "user";
  }
}
