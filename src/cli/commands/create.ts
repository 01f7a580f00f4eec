import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { createResultSchema } from "../../dialects/management/model-schemas.ts";
import { toError } from "../../errors/to-error.ts";
import { usageError } from "../cli-error.ts";
import { isSystemError } from "../../errors/exhausted-resource.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { readStdin } from "../read-stdin.ts";
import { printable } from "../terminal/printable.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

/** daybreak create <model> -f Modelfile */
export function createCommand(io: CliIo): Command {
  return clientCommand("create")
    .description("make a model from a Modelfile")
    .argument("<model>", "name of the new model")
    .option("-f, --file <path>", "the Modelfile; - for standard input", "Modelfile")
    .action(async (name: string, options: ClientOptions & { file: string }) => {
      const modelfile = options.file === "-" ? await readStdin(io) : await readModelfile(options.file);
      const client = connect(io, options);
      const answer = await client.json(createResultSchema, "POST", "/api/models/create", {
        alias: name,
        modelfile,
        base_folder: options.file === "-" ? process.cwd() : path.dirname(path.resolve(options.file)),
      });
      if (options.json) return writeJson(io.stdout, answer);
      for (const note of answer.notes ?? []) await writeLine(io.stderr, `Note: ${printable(note)}`);
      return writeLine(io.stdout, `Created ${answer.alias}.`);
    });
}

async function readModelfile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isSystemError(error) && error.code === "ENOENT")
      throw usageError(
        `There is no file ${path.resolve(file)}; name the Modelfile with -f, or - for standard input.`,
      );
    throw usageError(`Cannot read the Modelfile: ${toError(error).message}`);
  }
}
