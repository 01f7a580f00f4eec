/** A failure that a command reports in one sentence and ends with; `code` is for scripts, as in the daemon's errors. */
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

/** The command line is wrong. */
export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, "usage", message);
}

/** A program that a command has become has ended: so does the command, with its exit code. Never printed. */
export class ProgramEnded extends Error {
  override readonly name = "ProgramEnded";
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("ended");
    this.exitCode = exitCode;
  }
}

/** The reason of an aborted signal: what ended the command early. Never printed. */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode) {
    super("interrupted");
    this.exitCode = exitCode;
  }
}

/** What the program's exit code says; part of its interface, listed in docs/cli.md. */
export const EXIT = {
  ok: 0,
  /** Anything without a more specific code. */
  error: 1,
  /** What was given is wrong: the command line, the configuration, a name, a value, a Modelfile; nothing was done. */
  usage: 2,
  /** No daemon answers. */
  noDaemon: 3,
  /** No such model, file or route. */
  notFound: 4,
  /** The model is in a state that does not allow it: loaded already, not loaded, exists already, busy. */
  conflict: 5,
  /** The daemon or the hub cannot do it now; the same command may succeed later. */
  tryLater: 6,
  /** The terminal went away: 128 + SIGHUP. */
  hungUp: 129,
  /** Ctrl-C: 128 + SIGINT. */
  interrupted: 130,
  /** The reader of the output is gone: 128 + SIGPIPE. */
  brokenPipe: 141,
  /** 128 + SIGTERM. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
