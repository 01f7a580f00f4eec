import { mkdirSync } from "node:fs";
import path from "node:path";
import { MIB } from "../../json/quantities.ts";

/** Size limit of the cache, many times the programs of a dozen models: those of one take 2 MB on lavapipe. */
const MAX_MIB = 256;

/** Variables of drivers with a configurable cache of compiled programs. Each driver evicts its oldest programs. */
const DRIVERS = [
  {
    configured: /^MESA_(SHADER|GLSL)_CACHE_/,
    variables: (folder: string) => ({
      MESA_SHADER_CACHE_DIR: folder,
      MESA_SHADER_CACHE_MAX_SIZE: `${MAX_MIB}M`,
    }),
  },
  {
    configured: /^__GL_SHADER_DISK_CACHE/,
    variables: (folder: string) => ({
      // The driver turns it off for root, as in a container.
      __GL_SHADER_DISK_CACHE: "1",
      __GL_SHADER_DISK_CACHE_PATH: folder,
      __GL_SHADER_DISK_CACHE_SIZE: String(MAX_MIB * MIB),
    }),
  },
] as const;

/**
 * Variables with which drivers on Linux cache compiled programs in a folder of Daybreak. By default they use a folder in
 * the account's home, which a service does not have, and share its size limit with all other programs. Dawn, as a Node
 * addon, has no cache. Drivers of Direct3D and Metal always use folders of the system.
 * @param folder created if missing, for this user only
 * @param environment variables of the daemon; drivers that it configures keep that configuration
 */
export function programCacheVariables(
  folder: string,
  environment: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  if (platform !== "linux") return {};
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    // Then programs are compiled each time, or cached in the driver's default folder.
    return {};
  }
  const names = Object.keys(environment);
  const unconfigured = DRIVERS.filter(({ configured }) => !names.some((name) => configured.test(name)));
  return Object.assign({}, ...unconfigured.map(({ variables }) => variables(path.resolve(folder))));
}
