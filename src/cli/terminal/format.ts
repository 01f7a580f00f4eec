import { stripVTControlCharacters, styleText } from "node:util";
import type { z } from "zod";
import type { modelListEntrySchema } from "../../api/wire/models.ts";
import type { CliIo, Output } from "../cli-io.ts";

const COLUMN_GAP = "  ";

/** Width of a text in columns: attributes take none, wide characters such as East Asian ones take two. */
function width(text: string): number {
  let columns = 0;
  for (const character of stripVTControlCharacters(text)) {
    columns += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/u.test(
      character,
    )
      ? 2
      : 1;
  }
  return columns;
}

/** Formats a table with aligned columns, without trailing spaces. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return formatFields([header, ...rows]);
}

/** Formats rows with aligned columns, without trailing spaces. */
export function formatFields(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => width(row[column] ?? ""))));
  return rows.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - width(cell))))
      .join(COLUMN_GAP)
      .trimEnd(),
  );
}

type Entry = z.infer<typeof modelListEntrySchema>;

const CONTEXT_REASONS: Readonly<Record<NonNullable<Entry["context_source"]>, string>> = {
  request: "asked for",
  modelfile: "num_ctx",
  configuration: "models.context_size",
  default: "the default",
  trained: "all it was trained for",
  automatic: "chosen automatically",
  memory: "limited by memory",
};

/** "8192 tokens (limited by memory)" */
export function describeContext(model: Pick<Entry, "context_size" | "context_source">): string {
  const reason = model.context_source && CONTEXT_REASONS[model.context_source];
  return `${model.context_size} tokens${reason === undefined ? "" : ` (${reason})`}`;
}

type Style = Readonly<Record<"bold" | "dim" | "red", (text: string) => string>>;

/** Returns the attributes of a terminal; plain text for a file or a pipe, NO_COLOR or TERM=dumb. */
export function styleFor(output: Output, env: CliIo["env"]): Style {
  // https://no-color.org: any value that is not empty.
  const isPlain = !output.isTTY || Boolean(env["NO_COLOR"]) || env["TERM"] === "dumb";
  const style = (name: keyof Style) => (text: string) =>
    isPlain ? text : styleText(name, text, { validateStream: false });
  return { bold: style("bold"), dim: style("dim"), red: style("red") };
}

/** Control characters that a terminal interprets, except tab and newline. */
// oxlint-disable-next-line no-control-regex -- finding control characters is the point
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Removes control characters, so that untrusted text cannot control the terminal. */
export function printable(text: string): string {
  return text.replace(CONTROL_CHARACTERS, "");
}

/** Words that need no quotes in a shell. */
const UNQUOTED_WORD = /^[\w@%+=:,./~-]+$/;

/** Returns a command line of `daybreak` that can be pasted into a shell. */
export function commandLine(words: readonly string[], platform: NodeJS.Platform = process.platform): string {
  return ["daybreak", ...words.map((word) => quoteWord(word, platform))].join(" ");
}

function quoteWord(word: string, platform: NodeJS.Platform): string {
  const plain = platform === "win32" ? word.replaceAll("\\", "/") : word;
  if (UNQUOTED_WORD.test(plain)) return word;
  return platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
