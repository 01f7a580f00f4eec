import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { text as consumersText } from "node:stream/consumers";
import { abortable } from "../async/promises.ts";
import { codeOrReason } from "../errors/reason-of.ts";
import { CliError, EXIT, Interruption } from "./cli-error.ts";

/** A standard output stream; the terminal's properties are absent when it is a file or a pipe. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };
type Input = Readable & { readonly isTTY?: boolean; setRawMode?(mode: boolean): unknown };

/** What a command may touch of its process. */
export interface CliIo {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted with an {@link Interruption} by Ctrl-C or a signal that asks the process to end. */
  readonly stopSignal: AbortSignal;
  /** Aborted as `stopSignal` is, and also when nothing reads the output anymore. */
  readonly signal: AbortSignal;
  /** Calls `handler` for every Ctrl-C instead of aborting `signal`, until the result is disposed. */
  catchInterrupts(handler: () => void): Disposable;
}

/** One Ctrl-C may arrive twice, from the terminal and from a parent that passes it on; a person needs longer. */
const SAME_SIGNAL_MS = 250;

/**
 * The real process. The first interruption aborts the signals, so that the command can cancel its request to the
 * daemon; a second one ends the process at once.
 */
export function processIo(now: () => number = () => performance.now()): CliIo {
  const stop = new AbortController();
  const unread = new AbortController();
  let catcher: (() => void) | undefined;
  let interruptedAt: number | undefined;
  const interrupt = (exitCode: Interruption["exitCode"]): void => {
    if (interruptedAt === undefined) {
      interruptedAt = now();
      stop.abort(new Interruption(exitCode));
    } else if (now() - interruptedAt > SAME_SIGNAL_MS) {
      process.exit(exitCode);
    }
  };
  process.on("SIGINT", () => (catcher ? catcher() : interrupt(EXIT.interrupted)));
  process.on("SIGTERM", () => interrupt(EXIT.terminated));
  process.on("SIGHUP", () => interrupt(EXIT.hungUp));
  // The launcher above this process is gone, without a signal that it could pass on.
  process.once("disconnect", () => interrupt(EXIT.terminated));
  // Listening alone would keep this process alive.
  process.channel?.unref();
  const onOutputError = (error: NodeJS.ErrnoException): void => {
    unread.abort(error.code === "EPIPE" ? new Interruption(EXIT.brokenPipe) : unwritable(error));
  };
  process.stdout.on("error", onOutputError);
  process.stderr.on("error", onOutputError);
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    stopSignal: stop.signal,
    signal: AbortSignal.any([stop.signal, unread.signal]),
    catchInterrupts(handler) {
      catcher = handler;
      return {
        [Symbol.dispose]() {
          catcher = undefined;
        },
      };
    },
  };
}

/** Usually a full disk. A daemon continues without its log. */
function unwritable(error: NodeJS.ErrnoException): CliError {
  return new CliError(
    EXIT.error,
    "output_failed",
    `The output cannot be written (${codeOrReason(error)}). Is its disk full?`,
    error,
  );
}

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

/** Everything on standard input, without the newlines at its end. Ctrl-C ends the wait for it. */
export async function readStdin({ stdin, signal }: CliIo): Promise<string> {
  try {
    return (await abortable(consumersText(stdin), signal)).replace(/[\r\n]+$/, "");
  } finally {
    // An input that is still open would keep the process alive.
    stdin.destroy();
  }
}
