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

/** A JSON line of the log as text: time, level, message, fields. Names of models cannot steer the terminal. */
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
