import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { Argument, type Command } from "commander";
import { runChild } from "../../launch/hand-over.mjs";
import { startDaemonIfNone } from "../background/start-daemon.ts";
import { CliError, EXIT, Interruption } from "../cli-error.ts";
import { type CliIo, writeJson } from "../cli-io.ts";
import { connect, daemonAddress, httpAddress } from "../client/daemon-address.ts";
import { CODING_AGENTS, findInPath } from "../launch/coding-agents.ts";
import { MIN_AGENT_CONTEXT, loadForAgent } from "../launch/load-for-agent.ts";
import { clientCommand, type ClientOptions, parseInteger } from "../options/common-options.ts";

interface LaunchOptions extends ClientOptions {
  model?: string;
  contextSize?: number;
}

/** Sent if the daemon requires no key: agents insist on one. */
const PLACEHOLDER_KEY = "any";

/** daybreak launch <agent> */
export function launchCommand(io: CliIo): Command {
  return clientCommand("launch", "load the model, and print how the agent would be run instead of running it")
    .description("run a coding agent on a model of this machine; starts a daemon when none runs")
    .addArgument(new Argument("<agent>", "the agent").choices(Object.keys(CODING_AGENTS)))
    .argument("[args...]", "after --, what the agent itself is to be given")
    .option("-m, --model <name>", "model to work with; by default the default model")
    .option(
      "--context-size <tokens>",
      "context window, at least 16384; by default 32768, or less where the model was trained for less or the memory is short",
      parseInteger(MIN_AGENT_CONTEXT),
    )
    .action(async (name: string, words: string[], options: LaunchOptions) => {
      const agent = CODING_AGENTS[name];
      if (agent === undefined) return;
      const program = findInPath([agent.program], io.env);
      if (program === undefined && !options.json) {
        throw new CliError(
          EXIT.notFound,
          "agent_not_found",
          `${agent.title} is not installed: there is no ${agent.program} in PATH. Install it with: ${agent.install}`,
        );
      }
      await startDaemonIfNone(io, options);
      const client = connect(io, options);
      const address = daemonAddress(io.env, options);
      const { model, contextSize } = await loadForAgent(io, client, options.model, options.contextSize);
      const url = await httpAddress(client, address);
      const { env, args } = agent.settings({
        url,
        apiKey: address.apiKey ?? PLACEHOLDER_KEY,
        model,
        contextSize,
      });
      const run = { program: program ?? agent.program, args: [...args, ...words], env };
      if (options.json) return writeJson(io.stdout, { model, context_size: contextSize, ...run });
      await runAgent(run.program, run.args, run.env);
    });
}

/** Files that only cmd.exe can run. */
const SHELL_SCRIPT = /\.(?:cmd|bat)$/i;

/**
 * Runs another program in place of this one: it gets the terminal and all signals.
 * @throws Interruption with the program's exit code when it has ended, or cannot be started
 */
async function runAgent(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<never> {
  Object.assign(process.env, env);
  if (SHELL_SCRIPT.test(program)) {
    await runChild(process.env["ComSpec"] ?? "cmd.exe", shellArguments(program, args), {
      spawn: spawnVerbatim,
    });
  } else await runChild(program, args);
  throw new Interruption(Number(process.exitCode ?? 0));
}

/** Arguments that make cmd.exe run a script with these arguments unchanged. */
export function shellArguments(program: string, args: readonly string[]): string[] {
  const quoted = [program, ...args].map((word) => `"${word.replaceAll('"', '""')}"`);
  return ["/d", "/s", "/c", `"${quoted.join(" ")}"`];
}

function spawnVerbatim(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn(file, args, { ...options, windowsVerbatimArguments: true });
}
