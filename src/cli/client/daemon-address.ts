import { z } from "zod";
import { ConfigError } from "../../config/config-error.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { usageError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import type { ClientOptions } from "../options/common-options.ts";
import { DaemonClient } from "./daemon-client.ts";
import { type Endpoint, localEndpoints, parseEndpoint } from "./send-request.ts";

/** A client of the daemon that the options name. It connects with its first request. */
export function connect(io: CliIo, options: ClientOptions): DaemonClient {
  const { endpoints, apiKey } = daemonAddress(io.env, options);
  return new DaemonClient({ endpoints, apiKey, signal: io.signal });
}

interface DaemonAddress {
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

const statusSchema = z.object({ http_endpoint: z.string() });

/** Where other programs of this machine reach the daemon over HTTP, without a slash at the end. */
export async function httpAddress(
  client: DaemonClient,
  { endpoints, named }: DaemonAddress,
): Promise<string> {
  const [first] = endpoints;
  if (named && first?.kind === "http") return withoutSlash(first.url);
  const { http_endpoint: address } = await client.json(statusSchema, "GET", "/api/system/status");
  const url = new URL(address);
  // Browsers give threads and WebAssembly to pages of this machine only under its own name.
  if (["0.0.0.0", "[::]"].includes(url.hostname)) url.hostname = "127.0.0.1";
  return withoutSlash(url);
}

function withoutSlash(url: URL): string {
  return url.href.replace(/\/$/, "");
}
