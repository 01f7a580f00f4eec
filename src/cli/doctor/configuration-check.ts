import { ConfigError } from "../../config/config-error.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { defaultConfigFile } from "../../config/default-config-file.ts";
import { configSchema } from "../../config/schema.ts";
import { type Check, note, ok, problem } from "./check.ts";

const NAME = "Configuration";

/** What was read, or why nothing could be. */
export type ReadConfiguration = LoadedConfig & { readonly error?: string };

/** Reads the configuration; when it is wrong, the defaults, which the other checks can still use. */
export function readConfiguration(
  env: NodeJS.ProcessEnv,
  { config: file, socket }: { config?: string; socket?: string },
): ReadConfiguration {
  try {
    return loadConfig({ env, file, flags: { socket } });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const config = configSchema.parse({});
    return { config, file: undefined, warnings: [], origins: new Map(), error: error.message };
  }
}

/** The configuration's file and variables. */
export function configurationCheck(read: ReadConfiguration, env: NodeJS.ProcessEnv): Check {
  const look = () => {
    const { file, warnings, error } = read;
    if (error !== undefined) {
      return problem(NAME, error, "Correct it (docs/configuration.md); the checks below use the defaults.");
    }
    if (warnings.length === 0)
      return ok(NAME, file === undefined ? noFile(defaultConfigFile(env)) : `valid: ${file}`);
    const what = file === undefined ? "none is read" : `valid: ${file}`;
    return note(NAME, `${what}; the daemon warns when it starts`, warnings.join(" "));
  };
  return { name: NAME, deadlineMs: 5000, look: async () => [look()] };
}

function noFile(place: string | undefined): string {
  return place === undefined ? "no file" : `no file; one could be at ${place}`;
}
