import type { CliIo } from "../cli-io.ts";
import type { ClientOptions } from "../options/client-command.ts";
import { daemonAddress } from "./daemon-address.ts";
import { DaemonClient } from "./daemon-client.ts";

/** A client of the daemon that the options name. It connects with its first request. */
export function connect(io: CliIo, options: ClientOptions): DaemonClient {
  const { endpoints, apiKey } = daemonAddress(io.env, options);
  return new DaemonClient({ endpoints, apiKey, signal: io.signal });
}
