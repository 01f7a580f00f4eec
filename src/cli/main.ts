import { CommanderError } from "commander";
import { CliError, Interruption } from "./cli-error.ts";
import { type CliIo, processIo } from "./cli-io.ts";
import { commandFirst } from "./command-first.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { createProgram } from "./program.ts";
import { styleFor } from "./terminal/style.ts";
import { writeJson, writeLine } from "./terminal/write.ts";

/**
 * Runs one command.
 * @param given what follows the program's name
 * @returns the exit code
 */
export async function main(given: readonly string[], io: CliIo = processIo()): Promise<ExitCode> {
  const args = commandFirst(given);
  const program = await createProgram(io, args);
  let asJson = false;
  program.hook("preAction", (_program, command) => {
    asJson = command.opts<{ json?: boolean }>().json ?? false;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    return report(io, error, asJson);
  }
}

async function report(io: CliIo, error: unknown, asJson: boolean): Promise<ExitCode> {
  // Commander has said itself what is wrong; its codes are 0 (help, version) and 1.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof Interruption) return error.exitCode;
  const failure = error instanceof CliError ? error : unexpected(error);
  if (asJson) {
    await writeJson(io.stderr, { error: { message: failure.message, code: failure.code } });
  } else {
    await writeLine(io.stderr, `${styleFor(io.stderr, io.env).red("daybreak:")} ${failure.message}`);
  }
  return failure.exitCode;
}

function unexpected(error: unknown): CliError {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new CliError(EXIT.error, "internal_error", message, error);
}
