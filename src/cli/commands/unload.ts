import type { Command } from "commander";
import { unloadResultSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { modelPath } from "../client/model-path.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak unload <model…> */
export function unloadCommand(io: CliIo): Command {
  return clientCommand("unload", "print each answer of the daemon as a line of JSON")
    .description("take models out of memory; they stay on disk")
    .argument("<model...>", "names of the models")
    .action(async (names: string[], options: ClientOptions) => {
      const client = connect(io, options);
      for (const name of names) {
        const answer = await client.json(unloadResultSchema, "POST", modelPath(name, "unload"));
        if (options.json) await writeJson(io.stdout, answer);
        else await writeLine(io.stdout, `Unloaded ${answer.alias}.`);
      }
    });
}
