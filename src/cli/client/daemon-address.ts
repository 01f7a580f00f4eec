import { z } from "zod";
import type { LoadedConfig } from "../../config/load-config.ts";
import { usageError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { type ClientOptions, loadConfigOrFail } from "../options/common-options.ts";
import { DaemonClient } from "./daemon-client.ts";
import { type Endpoint, localEndpoints, parseEndpoint } from "./send-request.ts";

/** Returns a client of the daemon that the options name. It connects with its first request. */
export function connect(io: CliIo, options: ClientOptions): DaemonClient {
  const { endpoints, apiKey } = daemonAddress(io.env, options);
  return new DaemonClient({ endpoints, apiKey, signal: io.signal });
}

interface DaemonAddress {
  /** The preferred one first. */
  readonly endpoints: readonly Endpoint[];
  readonly apiKey: string | undefined;
  /** True if the user has named an address; such a daemon is never started. */
  readonly isExplicit: boolean;
  readonly loaded: LoadedConfig;
}

/**
 * Finds the daemon: at --url or SERVICE_URL, otherwise the local one of the configuration, preferably over IPC.
 * @throws CliError if the configuration or the address is invalid
 */
export function daemonAddress(env: CliIo["env"], options: ClientOptions): DaemonAddress {
  const loaded = loadConfigOrFail({ env, file: options.config, flags: { socket: options.socket } });
  const { config } = loaded;
  const keyFromEnv = env["SERVICE_API_KEY"] || undefined;
  // --socket is more specific than a variable that is set for every command.
  const url = options.url ?? (options.socket === undefined ? env["SERVICE_URL"] || undefined : undefined);
  if (url === undefined) {
    const endpoints = localEndpoints(config);
    return { endpoints, apiKey: keyFromEnv ?? config.api_keys[0], isExplicit: false, loaded };
  }
  try {
    // Keys of the local daemon are not sent to another address.
    return {
      endpoints: [parseEndpoint(url, config.http.port)],
      apiKey: keyFromEnv,
      isExplicit: true,
      loaded,
    };
  } catch {
    throw usageError(
      `"${url}" is not a daemon address. Examples: http://192.168.1.5:8080, box:8080, ipc:///run/d.sock`,
    );
  }
}

const statusSchema = z.object({ http_endpoint: z.string() });

/** HTTP URL of the daemon for other programs on this machine, without a final slash. */
export async function httpAddress(
  client: DaemonClient,
  { endpoints, isExplicit: named }: DaemonAddress,
): Promise<string> {
  const [first] = endpoints;
  if (named && first?.kind === "http") return withoutSlash(first.url);
  const { http_endpoint: address } = await client.json(statusSchema, "GET", "/api/system/status");
  const url = new URL(address);
  // Browsers allow shared memory on plain HTTP for loopback addresses only.
  if (["0.0.0.0", "[::]"].includes(url.hostname)) url.hostname = "127.0.0.1";
  return withoutSlash(url);
}

function withoutSlash(url: URL): string {
  return url.href.replace(/\/$/, "");
}
