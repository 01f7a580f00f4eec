import { text } from "node:stream/consumers";
import { abortable } from "../async/abortable.ts";
import type { CliIo } from "./cli-io.ts";

/** Everything on standard input, without the newlines at its end. Ctrl-C ends the wait for it. */
export async function readStdin({ stdin, signal }: CliIo): Promise<string> {
  try {
    return (await abortable(text(stdin), signal)).replace(/[\r\n]+$/, "");
  } finally {
    // An input that is still open would keep the process alive.
    stdin.destroy();
  }
}
