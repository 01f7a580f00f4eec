import type { Command } from "commander";
import { z } from "zod";
import { usageError } from "../cli-error.ts";
import { type CliIo, readStdin, writeJson } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { withLoadedModel } from "../client/find-model.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";

const embeddingsSchema = z.object({
  model: z.string(),
  embeddings: z.array(z.array(z.number())),
  dimensions: z.number(),
  total_tokens: z.number(),
});

/** daybreak embed [text…] */
export function embedCommand(io: CliIo): Command {
  return clientCommand("embed")
    .description("turn texts into vectors; prints one JSON array of numbers per line")
    .argument("[text...]", "the texts; without any, standard input is the text")
    .option("-m, --model <name>", "model to use; the daemon's default model when absent")
    .action(async (texts: string[], options: ClientOptions & { model?: string }) => {
      const input = texts.length > 0 ? texts : [await readText(io)];
      const client = connect(io, options);
      const embed = () =>
        client.json(embeddingsSchema, "POST", "/api/embeddings", { model: options.model, input });
      const answer = await withLoadedModel(io, client, options.model, embed);
      if (options.json) return writeJson(io.stdout, answer);
      for (const vector of answer.embeddings) await writeJson(io.stdout, vector);
      return undefined;
    });
}

async function readText(io: CliIo): Promise<string> {
  if (io.stdin.isTTY) throw usageError("No text given. Pass it as an argument or on standard input.");
  return readStdin(io);
}
