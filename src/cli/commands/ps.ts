import type { Command } from "commander";
import { modelListSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { contextInWords } from "../terminal/context-in-words.ts";
import { formatBytes, formatDuration } from "../terminal/quantity.ts";
import { formatTable } from "../terminal/table.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak ps */
export function psCommand(io: CliIo): Command {
  return clientCommand("ps", "print the loaded models as JSON")
    .description("list the models in memory")
    .action(async (options: ClientOptions) => {
      const client = connect(io, options);
      const { models } = await client.json(modelListSchema, "GET", "/api/models");
      const loaded = models.filter((model) => model.state === "loaded");
      if (options.json) return writeJson(io.stdout, { models: loaded });
      if (loaded.length === 0) return writeLine(io.stderr, "No model is loaded.");
      const rows = loaded.map((model) => [
        model.alias + (model.is_default ? " (default)" : ""),
        model.memory_bytes === undefined ? "-" : formatBytes(model.memory_bytes),
        contextInWords(model),
        String(model.gpu_layers),
        String(model.active_requests),
        until(model.expires_at),
      ]);
      const header = ["NAME", "MEMORY", "CONTEXT", "GPU LAYERS", "REQUESTS", "UNLOADS"];
      for (const line of formatTable(header, rows)) await writeLine(io.stdout, line);
      return undefined;
    });
}

function until(expiresAt: string | undefined): string {
  if (expiresAt === undefined) return "by hand";
  return `in ${formatDuration(Math.max(0, Date.parse(expiresAt) - Date.now()))}`;
}
