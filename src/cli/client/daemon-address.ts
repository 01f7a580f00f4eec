import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { ConfigError } from "../../config/config-error.ts";
import { usageError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import type { ClientOptions } from "../options/client-command.ts";
import { type Endpoint, localEndpoints, parseEndpoint } from "./endpoint.ts";

export interface DaemonAddress {
  /** Best first. */
  readonly endpoints: readonly Endpoint[];
  readonly apiKey: string | undefined;
  /** True when the user named the daemon by its address: then it is not ours to start. */
  readonly named: boolean;
  readonly loaded: LoadedConfig;
}

/**
 * Where the daemon is: at --url or SERVICE_URL, else where the configuration puts the local one, by IPC first.
 * Throws a usage error when the configuration or the address cannot be read.
 */
export function daemonAddress(env: CliIo["env"], options: ClientOptions): DaemonAddress {
  const loaded = load(env, options);
  const { config } = loaded;
  const keyFromEnv = env["SERVICE_API_KEY"] || undefined;
  // --socket is more specific than a variable that is set for every command.
  const url = options.url ?? (options.socket === undefined ? env["SERVICE_URL"] || undefined : undefined);
  if (url === undefined) {
    const endpoints = localEndpoints(config);
    return { endpoints, apiKey: keyFromEnv ?? config.api_keys[0], named: false, loaded };
  }
  try {
    // The local daemon's own keys stay here: the address may belong to anyone.
    return { endpoints: [parseEndpoint(url, config.http.port)], apiKey: keyFromEnv, named: true, loaded };
  } catch {
    throw usageError(
      `"${url}" is not a daemon address. Examples: http://192.168.1.5:8080, box:8080, ipc:///run/d.sock`,
    );
  }
}

function load(env: CliIo["env"], options: ClientOptions): LoadedConfig {
  try {
    return loadConfig({ env, file: options.config, flags: { socket: options.socket } });
  } catch (error) {
    if (error instanceof ConfigError) throw usageError(error.message);
    throw error;
  }
}
