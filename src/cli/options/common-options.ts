import { Command, InvalidArgumentError } from "commander";
import { type ConfigSources, loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { ConfigError } from "../../config/read-config-file.ts";
import { usageError } from "../cli-error.ts";

/** Options of every command that uses a daemon. */
export interface ClientOptions {
  url?: string;
  socket?: string;
  config?: string;
  json?: boolean;
}

/** Creates a command with the options of {@link ClientOptions}. `json` describes what --json prints. */
export function clientCommand(name: string, json = "print the daemon's answer as JSON"): Command {
  return new Command(name)
    .option("--json", json)
    .option("--url <address>", "daemon to talk to: a URL, host:port, or ipc://<path> (also SERVICE_URL)")
    .option("--socket <path>", "socket of the local daemon (also SERVICE_SOCKET)")
    .option("--config <file>", "configuration file of the local daemon (also SERVICE_CONFIG)");
}

/** Loads the configuration. @throws CliError if it is invalid */
export function loadConfigOrFail(sources: ConfigSources): LoadedConfig {
  try {
    return loadConfig(sources);
  } catch (error) {
    if (error instanceof ConfigError) throw usageError(error.message);
    throw error;
  }
}

/** Parses a number; the daemon checks its range. */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("Not a number.");
  return value;
}

/** Returns a parser of integers of at least `minimum`. */
export function parseInteger(minimum: number): (text: string) => number {
  return (text) => {
    const value = parseNumber(text);
    if (!Number.isSafeInteger(value) || value < minimum) {
      throw new InvalidArgumentError(`Not a whole number of at least ${minimum}.`);
    }
    return value;
  };
}

/** Collects the values of an option that may be repeated. */
export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}
