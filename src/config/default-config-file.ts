import os from "node:os";
import path from "node:path";

/** Where the platform keeps a user's configuration; read when it exists and no other file is named. */
export function defaultConfigFile(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  return path.join(configFolder(env, platform), "daybreak", "daybreak.toml");
}

function configFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  const home = os.homedir();
  if (platform === "win32") return env["APPDATA"] || path.join(home, "AppData", "Roaming");
  if (platform === "darwin") return path.join(home, "Library", "Application Support");
  return env["XDG_CONFIG_HOME"] || path.join(home, ".config");
}
