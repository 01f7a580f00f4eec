import type { Command } from "commander";
import { deleteResultSchema } from "../../http/models/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { modelPath } from "../client/model-path.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak rm <model…> */
export function rmCommand(io: CliIo): Command {
  return clientCommand("rm", "print each answer of the daemon as a line of JSON")
    .description("delete models; a model loaded from your own file is only forgotten")
    .argument("<model...>", "names of the models")
    .action(async (names: string[], options: ClientOptions) => {
      const client = connect(io, options);
      for (const name of names) {
        const answer = await client.json(deleteResultSchema, "DELETE", modelPath(name));
        if (options.json) await writeJson(io.stdout, answer);
        else await writeLine(io.stdout, `Deleted ${answer.alias}.`);
      }
    });
}
