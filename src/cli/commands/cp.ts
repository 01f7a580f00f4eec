import type { Command } from "commander";
import { copyResultSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak cp <source> <destination> */
export function cpCommand(io: CliIo): Command {
  return clientCommand("cp")
    .description("copy a model to a second name; both share its files")
    .argument("<source>", "name of the model")
    .argument("<destination>", "name of the copy")
    .action(async (source: string, destination: string, options: ClientOptions) => {
      const client = connect(io, options);
      const answer = await client.json(copyResultSchema, "POST", "/api/models/copy", { source, destination });
      if (options.json) return writeJson(io.stdout, answer);
      return writeLine(io.stdout, `Copied ${source} to ${answer.alias}.`);
    });
}
