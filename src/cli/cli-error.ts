import { toError } from "../errors/service-error.ts";

/** Failure that ends a command with one sentence; `code` is for scripts, as in the daemon's errors. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: ExitCode;
  readonly code: string;

  constructor(exitCode: ExitCode, code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
    this.code = code;
  }
}

/** Error for a wrong command line. */
export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, "usage", message);
}

/** Error for a file that cannot be written. */
export function writeError(what: string, cause: unknown): CliError {
  const message = `${what} cannot be written: ${toError(cause).message}`;
  return new CliError(EXIT.error, "output_failed", message, cause);
}

/**
 * Ends a command with an exit code and no message: the reason of the signal that ends it early, or thrown when a program
 * that ran in its place has ended.
 */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("interrupted");
    this.exitCode = exitCode;
  }
}

/** Exit codes of the program, part of its interface; docs/cli.md lists them. */
export const EXIT = {
  ok: 0,
  /** Any failure without a more specific code. */
  error: 1,
  /** Wrong command line, configuration, name, value or Modelfile; nothing was done. */
  usage: 2,
  /** No daemon answers. */
  noDaemon: 3,
  /** No such model, file or route. */
  notFound: 4,
  /** The state of the model does not allow it: already loaded, not loaded, already there, busy. */
  conflict: 5,
  /** The daemon or the hub cannot do it now; the same command may succeed later. */
  tryLater: 6,
  /** The terminal was closed: 128 + SIGHUP. */
  hungUp: 129,
  /** Ctrl-C: 128 + SIGINT. */
  interrupted: 130,
  /** The reader of the output has ended: 128 + SIGPIPE. */
  brokenPipe: 141,
  /** 128 + SIGTERM. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
