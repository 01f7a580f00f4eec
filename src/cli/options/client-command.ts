import { Command } from "commander";

/** Where the daemon is, and how to answer; every command that talks to a daemon has these options. */
export interface ClientOptions {
  url?: string;
  socket?: string;
  config?: string;
  json?: boolean;
}

/** A command with the options of {@link ClientOptions}. `json` says what --json prints. */
export function clientCommand(name: string, json = "print the daemon's answer as JSON"): Command {
  return new Command(name)
    .option("--json", json)
    .option("--url <address>", "daemon to talk to: a URL, host:port, or ipc://<path> (also SERVICE_URL)")
    .option("--socket <path>", "socket of the local daemon (also SERVICE_SOCKET)")
    .option("--config <file>", "configuration file of the local daemon (also SERVICE_CONFIG)");
}
