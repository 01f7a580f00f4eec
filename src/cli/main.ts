import { CommanderError } from "commander";
import { CliError, Interruption, ProgramEnded, usageError } from "./cli-error.ts";
import { type CliIo, processIo } from "./cli-io.ts";
import { commandFirst } from "./command-first.ts";
import { EXIT } from "./exit-codes.ts";
import { createProgram } from "./program.ts";
import { styleFor } from "./terminal/style.ts";
import { writeJson, writeLine } from "./terminal/write.ts";

/** Commander's code for having shown the help because no command was named. */
const SHOWN_HELP = "commander.help";

/**
 * Runs one command.
 * @param given what follows the program's name
 * @returns the exit code
 */
export async function main(given: readonly string[], io: CliIo = processIo()): Promise<number> {
  const args = commandFirst(given);
  const asJson = asksForJson(args);
  const program = await createProgram(io, args, { printsErrors: !asJson });
  try {
    await program.parseAsync(args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    return report(io, error, asJson);
  }
}

/** Also works when the rest of the command line is wrong; what follows "--" is text. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end === -1 ? args : args.slice(0, end)).includes("--json");
}

async function report(io: CliIo, error: unknown, asJson: boolean): Promise<number> {
  if (error instanceof Interruption || error instanceof ProgramEnded) return error.exitCode;
  if (error instanceof CommanderError) {
    // Its codes are 0 (help, version) and 1. Commander has already printed the error or the help.
    if (error.exitCode === 0) return EXIT.ok;
    if (!asJson || error.code === SHOWN_HELP) return EXIT.usage;
  }
  const failure = toCliError(error);
  if (asJson) {
    await writeJson(io.stderr, { error: { message: failure.message, code: failure.code } });
  } else {
    await writeLine(io.stderr, `${styleFor(io.stderr, io.env).red("daybreak:")} ${failure.message}`);
  }
  return failure.exitCode;
}

function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof CommanderError) return usageError(error.message.replace(/^error: /, ""));
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new CliError(EXIT.error, "internal_error", message, error);
}
