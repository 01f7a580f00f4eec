import type { Writable } from "node:stream";
import { pino, type Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { textLine } from "./text-log.ts";

/** A stream that may be a terminal. */
export type LogOutput = Writable & { readonly isTTY?: boolean };

/**
 * The daemon's log: JSON lines for programs, text for people at a terminal.
 * @param remember is given each line as JSON; it must be quick
 */
export function createLogger(
  config: Config["log"],
  output: LogOutput,
  remember: (line: string) => void = () => undefined,
): Logger {
  const isForPeople = isText(config, output);
  const destination = {
    write(line: string): void {
      remember(line);
      output.write(isForPeople ? textLine(line) : line);
    },
  };
  return pino(
    {
      level: config.level,
      base: null,
      // If a secret ever gets into a logged object, it must not get into the log.
      redact: ["*.authorization", "*.api_keys", "*.hub_token", "api_keys", "hub_token", "config"],
    },
    destination,
  );
}

/**
 * Writes the lines that say where the daemon listens and when it is ready, at any log level: as plain text if the log is
 * text, otherwise as JSON lines, so that both outputs have the same format.
 */
export function createAnnouncer(config: Config["log"], output: LogOutput): (line: string) => void {
  if (isText(config, output)) return (line) => void output.write(`${line}\n`);
  const logger = createLogger({ ...config, level: "info" }, output);
  return (line) => logger.info(line);
}

function isText({ format }: Config["log"], { isTTY }: LogOutput): boolean {
  return format === "text" || (format === "auto" && isTTY === true);
}
