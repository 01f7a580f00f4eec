import { EXIT, type ExitCode } from "./exit-codes.ts";

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
