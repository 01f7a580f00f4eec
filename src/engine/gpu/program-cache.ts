import { mkdirSync } from "node:fs";
import path from "node:path";

/** Many times what all programs of a dozen models take: those of one take 2 MB on lavapipe. */
const MAX_MIB = 256;
const MIB = 1024 * 1024;

/** Settings of the drivers that can be told where to keep compiled programs. Each drops its oldest when there are too many. */
const DRIVERS = [
  {
    own: /^MESA_(SHADER|GLSL)_CACHE_/,
    variables: (folder: string) => ({
      MESA_SHADER_CACHE_DIR: folder,
      MESA_SHADER_CACHE_MAX_SIZE: `${MAX_MIB}M`,
    }),
  },
  {
    own: /^__GL_SHADER_DISK_CACHE/,
    variables: (folder: string) => ({
      // Off by default for root, as in a container.
      __GL_SHADER_DISK_CACHE: "1",
      __GL_SHADER_DISK_CACHE_PATH: folder,
      __GL_SHADER_DISK_CACHE_SIZE: String(MAX_MIB * MIB),
    }),
  },
] as const;

/**
 * Variables with which drivers on Linux keep the programs that they compile, in a folder of Daybreak's. By default they
 * use the account's, which a service does not have, and share its size with all other programs. Dawn keeps nothing
 * itself: it asks its platform for a cache, and as a Node addon it has a platform without one. Direct3D's and Metal's
 * drivers keep programs in folders of the system, whatever a program sets.
 * @param folder created if missing, for this user only
 * @param environment the daemon's; what it sets for a driver is kept
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
    // Then programs are compiled each time, or kept where the driver does by itself.
    return {};
  }
  const names = Object.keys(environment);
  const free = DRIVERS.filter(({ own }) => !names.some((name) => own.test(name)));
  return Object.assign({}, ...free.map(({ variables }) => variables(path.resolve(folder))));
}
