import os from "node:os";
import path from "node:path";
import { defaultCacheDir } from "../launch/default-cache-dir.mjs";
import { canHaveFolder, ownTemporaryFolder } from "../launch/own-folder.mjs";

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
