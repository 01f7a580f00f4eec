import path from "node:path";
import { configOptions } from "../../config/config-options.ts";
import { ConfigError } from "../../config/config-error.ts";
import { defaultConfigFile } from "../../config/default-config-file.ts";
import { loadConfig } from "../../config/load-config.ts";
import type { Config } from "../../config/schema.ts";
import { usageError } from "../cli-error.ts";
import type { SystemdScope } from "./systemd-unit.ts";

/** Seconds that the daemon takes beyond the drain timeout, to stop engines. */
const MARGIN_SECONDS = 30;

const NO_HOME =
  "This account has no home folder, so it cannot have services. As root, install one for the system with --system.";

export interface ServiceSettings {
  /** As the daemon will find it. */
  readonly config: Config;
  /** The configuration file that it reads, when there is one. */
  readonly file: string;
  /** What it is given beside that file. */
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly stopSeconds: number;
  /** Variables that are set here and that it will not have. */
  readonly lostVariables: readonly string[];
}

interface SettingsQuestion {
  readonly env: NodeJS.ProcessEnv;
  readonly scope: SystemdScope;
  /** From --config. */
  readonly file: string | undefined;
}

/**
 * Reads the configuration as a service would: without the variables of any shell. Throws a usage error when the
 * configuration is wrong: such a service could not start.
 */
export function serviceSettings({ env, scope, file }: SettingsQuestion): ServiceSettings {
  const variables = configOptions.flatMap((option) => option.env);
  const lostVariables = variables.filter((name) => Boolean(env[name]));
  const named = file ?? (env["SERVICE_CONFIG"] || undefined);
  const absolute = named === undefined ? undefined : path.resolve(named);
  const ofSystem = {
    SERVICE_CACHE_DIR: "/var/cache/daybreak",
    SERVICE_SOCKET: "/run/daybreak/daybreak.sock",
    // With which the default configuration file is /etc/daybreak/daybreak.toml.
    XDG_CONFIG_HOME: "/etc",
  };
  const given: Readonly<Record<string, string>> = scope === "system" ? ofSystem : {};
  const seen = { ...without(env, variables), SERVICE_CONFIG: undefined, ...given };
  const read = absolute ?? defaultConfigFile(seen);
  if (read === undefined) throw usageError(NO_HOME);
  try {
    const { config, origins } = loadConfig({ env: seen, file: absolute });
    return {
      config,
      file: read,
      // The journal has its own times and levels, and people read it; but the user's choice wins.
      env: { ...given, ...(origins.has("log.format") ? {} : { SERVICE_LOG_FORMAT: "text" }) },
      args: absolute === undefined ? [] : ["--config", absolute],
      stopSeconds: Math.ceil(config.drain_timeout / 1000) + MARGIN_SECONDS,
      lostVariables,
    };
  } catch (error) {
    if (error instanceof ConfigError) throw usageError(error.message);
    throw error;
  }
}

function without(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}
