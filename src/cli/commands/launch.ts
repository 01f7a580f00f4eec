import { Argument, type Command } from "commander";
import { startDaemonIfNone } from "../background/start-daemon-if-none.ts";
import { CliError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import { httpAddress } from "../client/http-address.ts";
import { EXIT } from "../exit-codes.ts";
import { findInPath } from "../find-program.ts";
import { CODING_AGENTS } from "../launch/coding-agents.ts";
import { LEAST_AGENT_CONTEXT, loadForAgent } from "../launch/load-for-agent.ts";
import { runAgent } from "../launch/run-agent.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { parseInteger } from "../options/parse-number.ts";
import { writeJson } from "../terminal/write.ts";

interface LaunchOptions extends ClientOptions {
  model?: string;
  contextSize?: number;
}

/** Programs want a key even where the daemon has none. */
const ANY_KEY = "any";

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
      parseInteger(LEAST_AGENT_CONTEXT),
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
      const { env, args } = agent.settings({ url, apiKey: address.apiKey ?? ANY_KEY, model, contextSize });
      const run = { program: program ?? agent.program, args: [...args, ...words], env };
      if (options.json) return writeJson(io.stdout, { model, context_size: contextSize, ...run });
      await runAgent(run.program, run.args, run.env);
    });
}
