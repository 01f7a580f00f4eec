import type { Writable } from "node:stream";
import { pino, type Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { textLine } from "./text-log.ts";

/** A stream that may be a terminal. */
export type LogOutput = Writable & { readonly isTTY?: boolean };

/** The daemon's log: JSON lines for programs, text for people at a terminal. */
export function createLogger(config: Config["log"], output: LogOutput): Logger {
  const asText = config.format === "text" || (config.format === "auto" && output.isTTY === true);
  const destination = asText ? { write: (line: string) => output.write(textLine(line)) } : output;
  return pino(
    {
      level: config.level,
      base: null,
      // Should a secret ever get into a logged object, it must not get into the log.
      redact: ["*.authorization", "*.api_keys", "*.hub_token", "api_keys", "hub_token", "config"],
    },
    destination,
  );
}
