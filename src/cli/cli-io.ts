import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { abortable } from "../async/promises.ts";
import { codeOrReason } from "../errors/service-error.ts";
import { CliError, EXIT, Interruption } from "./cli-error.ts";

/** Standard output or standard error; a file or a pipe lacks the terminal's properties. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };
type Input = Readable & { readonly isTTY?: boolean; setRawMode?(mode: boolean): unknown };

/** Streams, environment and signals of the process, as commands use them. */
export interface CliIo {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted with an {@link Interruption} by Ctrl-C, SIGTERM or SIGHUP. */
  readonly stopSignal: AbortSignal;
  /** Aborted as `stopSignal` is, and also when the reader of the output has ended. */
  readonly signal: AbortSignal;
}

/** One Ctrl-C may arrive twice: from the terminal, and from a parent process that forwards it. A person is slower. */
const SAME_SIGNAL_MS = 250;

/**
 * Returns the streams and signals of this process. The first interruption aborts the signals, so that the command can
 * cancel its request to the daemon; a second one ends the process at once.
 */
export function processIo(): CliIo {
  const stop = new AbortController();
  const outputClosed = new AbortController();
  let interruptedAt: number | undefined;
  const interrupt = (exitCode: number): void => {
    if (interruptedAt === undefined) {
      interruptedAt = performance.now();
      stop.abort(new Interruption(exitCode));
    } else if (performance.now() - interruptedAt > SAME_SIGNAL_MS) {
      process.exit(exitCode);
    }
  };
  process.on("SIGINT", () => interrupt(EXIT.interrupted));
  process.on("SIGTERM", () => interrupt(EXIT.terminated));
  process.on("SIGHUP", () => interrupt(EXIT.hungUp));
  // The launcher above this process was killed, so it forwards no signal.
  process.once("disconnect", () => interrupt(EXIT.terminated));
  // The channel would keep this process alive.
  process.channel?.unref();
  const onOutputError = (error: NodeJS.ErrnoException): void => {
    outputClosed.abort(error.code === "EPIPE" ? new Interruption(EXIT.brokenPipe) : outputError(error));
  };
  process.stdout.on("error", onOutputError);
  process.stderr.on("error", onOutputError);
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    stopSignal: stop.signal,
    signal: AbortSignal.any([stop.signal, outputClosed.signal]),
  };
}

/** Error of a stream, usually for a full disk. A daemon continues without its log. */
function outputError(error: NodeJS.ErrnoException): CliError {
  return new CliError(
    EXIT.error,
    "output_failed",
    `The output cannot be written (${codeOrReason(error)}). Is its disk full?`,
    error,
  );
}

/**
 * Writes text and waits for a slow reader. A closed pipe is no error here: the handlers of {@link processIo} turn it
 * into an interruption.
 */
export async function write(output: Output, text: string): Promise<void> {
  if (text === "" || !output.writable) return;
  if (output.write(text)) return;
  try {
    await once(output, "drain");
  } catch {
    // EPIPE: the signal of CliIo ends the command.
  }
}

/** Writes a line. */
export function writeLine(output: Output, text = ""): Promise<void> {
  return write(output, `${text}\n`);
}

/** Writes lines, each with a line break. */
export function writeLines(output: Output, lines: readonly string[]): Promise<void> {
  return write(output, lines.map((line) => `${line}\n`).join(""));
}

/** Writes a value as one line of JSON, or indented. */
export function writeJson(output: Output, value: unknown, indent?: number): Promise<void> {
  return writeLine(output, JSON.stringify(value, undefined, indent));
}

/** Reads standard input to its end, without the final newlines. Ctrl-C ends the wait. */
export async function readStdin({ stdin, signal }: CliIo): Promise<string> {
  try {
    return (await abortable(readText(stdin), signal)).replace(/[\r\n]+$/, "");
  } finally {
    // An input that is still open would keep the process alive.
    stdin.destroy();
  }
}
