import path from "node:path";
import { homeFolder } from "../launch/home-folder.mjs";

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
