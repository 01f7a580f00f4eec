import type { Command } from "commander";
import { z } from "zod";
import { pause } from "../../async/pause.ts";
import { CliError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import { DaemonClient, HEALTH_POLL_MS } from "../client/daemon-client.ts";
import { EXIT } from "../exit-codes.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak stop */
export function stopCommand(io: CliIo): Command {
  return clientCommand("stop")
    .description("stop the local daemon once its running requests are done")
    .action(async (options: ClientOptions) => {
      const { endpoints, apiKey } = daemonAddress(io.env, options);
      // The route does not exist over the network: only those who can use the socket may stop the daemon.
      const local = endpoints.filter((endpoint) => endpoint.kind === "ipc");
      if (local.length === 0) {
        throw new CliError(
          EXIT.usage,
          "usage",
          "A daemon can only be stopped through its socket, and no socket is configured. End its process instead.",
        );
      }
      const client = new DaemonClient({ endpoints: local, apiKey, signal: io.signal });
      try {
        await client.json(z.unknown(), "POST", "/api/system/shutdown");
      } catch (error) {
        const anywhere = new DaemonClient({ endpoints, apiKey, signal: io.signal });
        throw isNoDaemon(error) && (await anywhere.health()) !== undefined ? noSocket(error) : error;
      }
      while ((await client.health()) !== undefined) await pause(HEALTH_POLL_MS, io.signal);
      if (options.json) return writeJson(io.stdout, { status: "stopped" });
      return writeLine(io.stdout, "The daemon is stopped.");
    });
}

function isNoDaemon(error: unknown): boolean {
  return error instanceof CliError && error.code === "no_daemon";
}

function noSocket(cause: unknown): CliError {
  return new CliError(
    EXIT.conflict,
    "no_socket",
    "A daemon answers at its port but not at this socket, and it can only be stopped through its socket. Name its socket with --socket; if it has none, or runs under another account, end its process.",
    cause,
  );
}
