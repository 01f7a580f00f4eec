import { Command, CommanderError } from "commander";
import { CliError, EXIT, Interruption, usageError } from "./cli-error.ts";
import { type CliIo, processIo, writeJson, writeLine } from "./cli-io.ts";
import { styleFor } from "./terminal/format.ts";
import { LLAMA_CPP_BUILD } from "../../wasm/llama-cpp-build.ts";
import { packageVersion } from "../daemon/package-version.ts";

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
  if (error instanceof Interruption) return error.exitCode;
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

interface ProgramOptions {
  /** True to write errors of the command line to standard error as well as throwing them. */
  readonly printsErrors: boolean;
}

type MakeCommand = (io: CliIo) => Promise<Command>;

/** All commands, in the order in which --help lists them. */
const COMMANDS: ReadonlyMap<string, MakeCommand> = new Map<string, MakeCommand>([
  ["serve", async (io) => (await import("./commands/serve.ts")).serveCommand(io)],
  ["run", async (io) => (await import("./commands/run.ts")).runCommand(io)],
  ["chat", async (io) => (await import("./commands/chat.ts")).chatCommand(io)],
  ["launch", async (io) => (await import("./commands/launch.ts")).launchCommand(io)],
  ["experiment", async (io) => (await import("./commands/experiment.ts")).experimentCommand(io)],
  ["batch", async (io) => (await import("./commands/batch.ts")).batchCommand(io)],
  ["embed", async (io) => (await import("./commands/embed.ts")).embedCommand(io)],
  ["search", async (io) => (await import("./commands/hub.ts")).searchCommand(io)],
  ["pull", async (io) => (await import("./commands/hub.ts")).pullCommand(io)],
  ["import", async (io) => (await import("./commands/import.ts")).importCommand(io)],
  ["list", async (io) => (await import("./commands/models.ts")).listCommand(io)],
  ["show", async (io) => (await import("./commands/models.ts")).showCommand(io)],
  ["create", async (io) => (await import("./commands/create.ts")).createCommand(io)],
  ["quantize", async (io) => (await import("./commands/create.ts")).quantizeCommand(io)],
  ["cp", async (io) => (await import("./commands/models.ts")).cpCommand(io)],
  ["rm", async (io) => (await import("./commands/models.ts")).rmCommand(io)],
  ["load", async (io) => (await import("./commands/loaded-models.ts")).loadCommand(io)],
  ["unload", async (io) => (await import("./commands/loaded-models.ts")).unloadCommand(io)],
  ["ps", async (io) => (await import("./commands/loaded-models.ts")).psCommand(io)],
  ["status", async (io) => (await import("./commands/daemon.ts")).statusCommand(io)],
  ["fleet", async (io) => (await import("./commands/fleet.ts")).fleetCommand(io)],
  ["gpu", async (io) => (await import("./commands/gpu.ts")).gpuCommand(io)],
  ["doctor", async (io) => (await import("./commands/doctor.ts")).doctorCommand(io)],
  ["service", async (io) => (await import("./commands/service.ts")).serviceCommand(io)],
  ["update", async (io) => (await import("./commands/update.ts")).updateCommand(io)],
  ["stop", async (io) => (await import("./commands/daemon.ts")).stopCommand(io)],
  ["ui", async (io) => (await import("./commands/ui.ts")).uiCommand(io)],
  ["completion", async (io) => (await import("./commands/completion.ts")).completionCommand(io)],
]);

/** Width of help in a file or a pipe. */
const PIPED_HELP_COLUMNS = 100;

const ALIASES: ReadonlyMap<string, string> = new Map([["ls", "list"]]);

/** The version needs no command; completion needs the descriptions of all. */
const NEED_NO_COMMAND = new Set(["-V", "--version"]);
const NEED_ALL_COMMANDS = new Set(["completion"]);

/**
 * Creates the program with only the command that the arguments name, because loading all commands is slow; with all of
 * them if they name none. The program throws a CommanderError instead of ending the process.
 */
export async function createProgram(
  io: CliIo,
  args: readonly string[],
  { printsErrors }: ProgramOptions,
): Promise<Command> {
  const program = new Command("daybreak")
    .description("Run language models on this machine: a daemon, and commands that talk to it.")
    .version(
      `${packageVersion()} (llama.cpp ${LLAMA_CPP_BUILD})`,
      "-V, --version",
      "print the version, and llama.cpp's",
    );
  const first = args[0] ?? "";
  const namedCommand = NEED_ALL_COMMANDS.has(first) ? undefined : COMMANDS.get(ALIASES.get(first) ?? first);
  const needed = NEED_NO_COMMAND.has(first) ? [] : namedCommand ? [namedCommand] : [...COMMANDS.values()];
  for (const make of needed) program.addCommand(await make(io));
  for (const command of [program, ...program.commands]) {
    command.exitOverride().configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => {
        if (printsErrors) write(text);
      },
      getOutHelpWidth: () => io.stdout.columns ?? PIPED_HELP_COLUMNS,
      getErrHelpWidth: () => io.stderr.columns ?? PIPED_HELP_COLUMNS,
    });
  }
  return program;
}
