import type { Command } from "commander";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import { DaemonClient } from "../client/daemon-client.ts";
import { pause } from "../client/pause.ts";
import { EXIT } from "../exit-codes.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak stop */
export function stopCommand(io: CliIo): Command {
  return clientCommand("stop")
    .description("end the local daemon once the requests under way are done")
    .action(async (options: ClientOptions) => {
      const { endpoints, apiKey } = daemonAddress(io.env, options);
      // Over the network the daemon knows no such route: only who may use its socket may end it.
      const local = endpoints.filter((endpoint) => endpoint.kind === "ipc");
      if (local.length === 0) {
        throw new CliError(
          EXIT.usage,
          "usage",
          "A daemon can be stopped by its socket only, and none is configured.",
        );
      }
      const client = new DaemonClient({ endpoints: local, apiKey, signal: io.signal });
      try {
        await client.json(z.unknown(), "POST", "/api/system/shutdown");
      } catch (error) {
        const anywhere = new DaemonClient({ endpoints, apiKey, signal: io.signal });
        throw isNoDaemon(error) && (await anywhere.health()) !== undefined ? noSocket(error) : error;
      }
      while ((await client.health()) !== undefined) await pause(io.signal);
      if (options.json) return writeJson(io.stdout, { status: "stopped" });
      return writeLine(io.stdout, "The daemon has stopped.");
    });
}

function isNoDaemon(error: unknown): boolean {
  return error instanceof CliError && error.code === "no_daemon";
}

function noSocket(cause: unknown): CliError {
  return new CliError(
    EXIT.conflict,
    "no_socket",
    "A daemon answers at its port and not at this socket, by which alone it can be stopped. Name its socket with --socket; if it has none, or is another account's, end its process.",
    cause,
  );
}
