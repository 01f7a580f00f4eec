import type { Writable } from "node:stream";
import { type Logger, pino } from "pino";
import type { Config } from "../config/schema.ts";

/** Stream that may be a terminal. */
export type LogOutput = Writable & { readonly isTTY?: boolean };

/**
 * Creates the daemon's log: JSON lines, or text at a terminal.
 * @param onLine called with each line as JSON; it must be fast
 */
export function createLogger(
  config: Config["log"],
  output: LogOutput,
  onLine: (line: string) => void = () => undefined,
): Logger {
  const writesText = isText(config, output);
  const destination = {
    write(line: string): void {
      onLine(line);
      output.write(writesText ? textLine(line) : line);
    },
  };
  return pino(
    {
      level: config.level,
      base: null,
      // Keeps secrets in logged objects out of the log.
      redact: ["*.authorization", "*.api_keys", "*.hub_token", "api_keys", "hub_token", "config"],
    },
    destination,
  );
}

/**
 * Returns a function that writes where the daemon listens and when it is ready, at any log level. It writes text or
 * JSON lines, as the log does.
 */
export function createAnnouncer(config: Config["log"], output: LogOutput): (line: string) => void {
  if (isText(config, output)) return (line) => void output.write(`${line}\n`);
  const logger = createLogger({ ...config, level: "info" }, output);
  return (line) => logger.info(line);
}

function isText({ format }: Config["log"], { isTTY }: LogOutput): boolean {
  return format === "text" || (format === "auto" && isTTY === true);
}

const LEVELS: Readonly<Record<number, string>> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO ",
  40: "WARN ",
  50: "ERROR",
  60: "FATAL",
};
const HIDDEN = new Set(["level", "time", "msg", "err"]);
// oxlint-disable-next-line no-control-regex -- a terminal obeys control characters
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

interface LogRecord {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly stack?: string };
  readonly [key: string]: unknown;
}

/** Formats a JSON line of the log as text: time, level, message, fields. Control characters are replaced. */
export function textLine(json: string): string {
  const record: LogRecord = JSON.parse(json);
  const fields = Object.entries(record)
    .filter(([key]) => !HIDDEN.has(key))
    .map(([key, value]) => `${key}=${typeof value === "string" ? quoted(value) : JSON.stringify(value)}`);
  const time = new Date(record.time).toISOString().slice(11, 23);
  const head = [time, LEVELS[record.level] ?? String(record.level), record.msg ?? "", ...fields].join(" ");
  const stack = record.err?.stack === undefined ? "" : `\n${record.err.stack}`;
  return `${printable(head.replaceAll("\n", "\\n"))}${printable(stack)}\n`;
}

function quoted(value: string): string {
  return /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
}

function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, "\uFFFD");
}
