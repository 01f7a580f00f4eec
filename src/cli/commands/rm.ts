import type { Command } from "commander";
import type { z } from "zod";
import { deleteResultSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { modelPath } from "../client/model-path.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** What deletion did, which depends on the model's source. */
function describe({ alias, source }: z.infer<typeof deleteResultSchema>): string {
  if (source === "shipped")
    return `Forgot ${alias}. It ships with Daybreak: its file stays, and it comes back when it is loaded or pulled, or at the next start.`;
  return source === "file" ? `Forgot ${alias}. The file is yours and stays.` : `Deleted ${alias}.`;
}

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
        else await writeLine(io.stdout, describe(answer));
      }
    });
}
