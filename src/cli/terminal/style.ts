import type { CliIo, Output } from "../cli-io.ts";

/** Text attributes of a terminal; the text itself where there is none, or where NO_COLOR or TERM=dumb ask for that. */
interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
}

const plain = (text: string): string => text;
const attribute = (on: number, off: number) => (text: string) => `\u001b[${on}m${text}\u001b[${off}m`;

export function styleFor(output: Output, env: CliIo["env"]): Style {
  // https://no-color.org: any value that is not empty.
  if (!output.isTTY || env["NO_COLOR"] || env["TERM"] === "dumb")
    return { bold: plain, dim: plain, red: plain };
  return { bold: attribute(1, 22), dim: attribute(2, 22), red: attribute(31, 39) };
}
