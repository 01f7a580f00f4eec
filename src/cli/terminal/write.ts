import { once } from "node:events";
import type { Output } from "../cli-io.ts";

/**
 * Writes and, when the reader is slower, waits for it. A reader that has left is not an error here:
 * the process's streams turn it into an interruption.
 */
export async function write(output: Output, text: string): Promise<void> {
  if (text === "" || !output.writable) return;
  if (output.write(text)) return;
  try {
    await once(output, "drain");
  } catch {
    // EPIPE: the signal of CliIo is aborted and ends the command.
  }
}

/** Writes a line. */
export function writeLine(output: Output, text = ""): Promise<void> {
  return write(output, `${text}\n`);
}

/** Writes a value as one line of JSON; `indent` for people who look at a single object. */
export function writeJson(output: Output, value: unknown, indent?: number): Promise<void> {
  return writeLine(output, JSON.stringify(value, undefined, indent));
}
