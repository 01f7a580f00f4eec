import { Command } from "commander";
import { LLAMA_CPP_BUILD } from "../../wasm/llama-cpp-build.ts";
import { packageVersion } from "../daemon/package-version.ts";
import type { CliIo } from "./cli-io.ts";

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
