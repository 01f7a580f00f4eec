import { CommanderError } from "commander";
import { CliError, EXIT, Interruption, ProgramEnded, usageError } from "./cli-error.ts";
import { type CliIo, processIo, writeJson, writeLine } from "./cli-io.ts";
import { createProgram } from "./program.ts";
import { styleFor } from "./terminal/format.ts";

/** Commander's code for help that is shown because no command was named. */
const SHOWN_HELP = "commander.help";

/**
 * Runs one command.
 * @param words arguments behind the program's name
 * @returns the exit code
 */
export async function main(words: readonly string[], io: CliIo = processIo()): Promise<number> {
  const args = commandFirst(words);
  const asJson = requestsJson(args);
  const program = await createProgram(io, args, { printsErrors: !asJson });
  try {
    await program.parseAsync(args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    return report(io, error, asJson);
  }
}

/** True if --json is given, also on an invalid command line. Arguments behind "--" do not count. */
function requestsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end === -1 ? args : args.slice(0, end)).includes("--json");
}

async function report(io: CliIo, error: unknown, asJson: boolean): Promise<number> {
  if (error instanceof Interruption || error instanceof ProgramEnded) return error.exitCode;
  if (error instanceof CommanderError) {
    // Exit code 0 is help or version, 1 an error. Commander has already printed it.
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

/** Options of all commands that use a daemon; true if a value follows. */
const COMMON_OPTIONS: ReadonlyMap<string, boolean> = new Map([
  ["--json", false],
  ["--url", true],
  ["--socket", true],
  ["--config", true],
]);

/**
 * Moves the command's name to the front, since common options may stand before it, as in `daybreak --url box list`.
 * Other arguments stay where they are.
 */
export function commandFirst(args: readonly string[]): readonly string[] {
  let at = 0;
  for (; at < args.length; at++) {
    const [name = "", inline] = (args[at] ?? "").split("=", 2);
    const takesValue = COMMON_OPTIONS.get(name);
    if (takesValue === undefined) break;
    if (takesValue && inline === undefined) at++;
  }
  const command = args[at];
  if (at === 0 || command === undefined || command.startsWith("-")) return args;
  return [command, ...args.slice(0, at), ...args.slice(at + 1)];
}
