import type { Command } from "commander";
import { pullLineSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { DownloadDisplay } from "../terminal/download-display.ts";
import { printable } from "../terminal/printable.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak pull <model> */
export function pullCommand(io: CliIo): Command {
  return clientCommand("pull", "print each progress report of the daemon as a line of JSON")
    .description("download a model; an interrupted download resumes where it stopped")
    .argument("<model>", "alias, or hub spec such as hf:owner/repository:Q4_K_M")
    .action(async (name: string, options: ClientOptions) => {
      const client = connect(io, options);
      const lines = client.lines(pullLineSchema, "POST", "/api/models/pull", { name, stream: true });
      if (io.stderr.isTTY) await writeLine(io.stderr, `Asking the hub for ${printable(name)} ...`);
      using display = new DownloadDisplay(io.stderr, name);
      for await (const line of lines) {
        if (options.json) await writeJson(io.stdout, line);
        else if (line.status === "success") {
          display.end();
          await writeLine(io.stdout, `Pulled ${line.model}.`);
        } else display.show(line);
      }
    });
}
