import path from "node:path";

/**
 * What a process needs beyond an engine's rights in order to load Dawn. Only processes that use a GPU get it: native
 * code is outside the sandbox.
 */
export function gpuPermissions(dawnPath: string): string[] {
  return ["--allow-addons", `--allow-fs-read=${path.join(path.dirname(dawnPath), path.sep)}`];
}

/**
 * Variables by which people and systems tell graphics drivers where they are and which to use; none of them holds
 * a secret. Drivers keep compiled shaders in folders that the others name.
 */
const DRIVER_VARIABLES =
  /^(VK_|MESA_|RADV_|ANV_|NVK_|TU_|LP_|GALLIUM_|LIBGL_|DRI_|__NV_|__GLX_|__EGL_|__GL_|CUDA_VISIBLE_DEVICES$|XDG_RUNTIME_DIR$|XDG_CACHE_HOME$|XDG_DATA_DIRS$|XDG_DATA_HOME$|XDG_CONFIG_DIRS$|LD_LIBRARY_PATH$|HOME$|TMPDIR$|PATH$|LOCALAPPDATA$|APPDATA$|USERPROFILE$|ProgramData$|ProgramFiles|TEMP$|TMP$)/;

/** The part of an environment that graphics drivers look at. */
export function driverEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && DRIVER_VARIABLES.test(name)) kept[name] = value;
  }
  return kept;
}
