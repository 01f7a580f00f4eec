import type { Command } from "commander";
import type { z } from "zod";
import { type modelListEntrySchema, modelListSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { printable } from "../terminal/printable.ts";
import { formatBytes, formatCount } from "../terminal/quantity.ts";
import { formatTable } from "../terminal/table.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak list */
export function listCommand(io: CliIo): Command {
  return clientCommand("list")
    .alias("ls")
    .description("list the models on disk")
    .option("-q, --quiet", "print names only, one per line")
    .action(async (options: ClientOptions & { quiet?: boolean }) => {
      const client = connect(io, options);
      const answer = await client.json(modelListSchema, "GET", "/api/models");
      if (options.json) return writeJson(io.stdout, answer);
      if (options.quiet) {
        for (const { alias } of answer.models) await writeLine(io.stdout, alias);
        return undefined;
      }
      if (answer.models.length === 0)
        return writeLine(io.stderr, "No models. Get one with: daybreak pull <name>");
      const rows = answer.models.map((model) => [
        model.alias + (model.is_default ? " (default)" : ""),
        model.path === "" ? "-" : formatCount(model.parameters),
        model.quantization || "-",
        formatBytes(model.size_bytes),
        model.path === "" ? "-" : String(model.context_size),
        stateOf(model) + (model.progress === undefined ? "" : ` ${Math.floor(model.progress * 100)}%`),
      ]);
      const header = ["NAME", "PARAMETERS", "QUANTIZATION", "SIZE", "CONTEXT", "STATE"];
      for (const line of formatTable(header, rows)) await writeLine(io.stdout, line);
      return undefined;
    });
}

/** With the machines that have it, if this one does not. */
function stateOf({ state, source, from }: z.infer<typeof modelListEntrySchema>): string {
  return source === "fleet" && from !== undefined ? `${state} on ${printable(from)}` : state;
}
