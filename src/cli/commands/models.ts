import type { Command } from "commander";
import type { z } from "zod";
import {
  copyResultSchema,
  deleteResultSchema,
  modelDetailSchema,
  modelfileSchema,
  type modelListEntrySchema,
  modelListSchema,
} from "../../api/wire/models.ts";
import { type CliIo, write, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { modelPath } from "../client/find-model.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import { formatBytes, formatCount } from "../../json/quantities.ts";
import { describeContext, formatFields, formatTable, printable } from "../terminal/format.ts";

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
        return writeLines(
          io.stdout,
          answer.models.map(({ alias }) => alias),
        );
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
      return writeLines(io.stdout, formatTable(header, rows));
    });
}

/** State of a model, with the machine that has it if it is a remote one. */
function stateOf({ state, source, from }: z.infer<typeof modelListEntrySchema>): string {
  return source === "fleet" && from !== undefined ? `${state} on ${printable(from)}` : state;
}

interface ShowOptions extends ClientOptions {
  modelfile?: boolean;
  template?: boolean;
  license?: boolean;
}

/** Settings as lines of PARAMETER's syntax. */
function settingLines(settings: z.infer<typeof modelDetailSchema>["settings" | "load_settings"]): string {
  return Object.entries(settings)
    .flatMap(([name, value]) => [value].flat().map((each) => `${name} ${JSON.stringify(each)}`))
    .join("\n");
}

/** First line of a text, with the option that prints the rest. */
function firstLine(text: string, option: string): string {
  const [first = "", ...rest] = text.trim().split("\n");
  if (rest.length === 0 && first.length <= MAX_PREVIEW) return first;
  return `${first.slice(0, MAX_PREVIEW)} … (${option} prints it)`;
}

function fullText(text = ""): string {
  return text === "" ? "" : printable(text).replace(/\n*$/, "\n");
}

/** Characters of a template or a license in the overview. */
const MAX_PREVIEW = 60;

/** daybreak show <model> */
export function showCommand(io: CliIo): Command {
  return clientCommand("show")
    .description("show what is known about a model")
    .argument("<model>", "name of the model")
    .option("--modelfile", "print a Modelfile that recreates this model")
    .option("--template", "print its chat template")
    .option("--license", "print its license")
    .action(async (name: string, options: ShowOptions) => {
      const client = connect(io, options);
      if (options.modelfile) {
        const answer = await client.json(modelfileSchema, "GET", modelPath(name, "modelfile"));
        if (options.json) return writeJson(io.stdout, answer);
        return write(io.stdout, answer.modelfile.replace(/\n*$/, "\n"));
      }
      const model = await client.json(modelDetailSchema, "GET", modelPath(name));
      if (options.json) return writeJson(io.stdout, model);
      if (options.template) return write(io.stdout, fullText(model.template));
      if (options.license) return write(io.stdout, fullText(model.license));
      const capabilities = Object.entries(model.capabilities)
        .filter(([, has]) => has)
        .map(([capability]) => capability);
      const fields: [string, string | undefined][] = [
        ["Name", model.alias],
        ["Title", model.name],
        ["State", model.state + (model.is_default ? ", default model" : "")],
        ["Architecture", model.architecture],
        ["Parameters", formatCount(model.parameters)],
        ["Quantization", model.quantization],
        ["Size", formatBytes(model.size_bytes)],
        ["Context", describeContext(model)],
        ["Trained for", model.trained_context_size > 0 ? `${model.trained_context_size} tokens` : undefined],
        ["Vocabulary", `${model.vocab_size} tokens`],
        ["GPU layers", `${model.gpu_layers} of ${model.block_count}`],
        ["Purpose", model.purpose],
        ["Capabilities", capabilities.join(", ") || "text only"],
        [model.source === "fleet" ? "Machines" : "Made from", model.from],
        ["File", model.files.join("\n")],
        ["Projector", model.projector],
        ["Draft model", model.draft],
        [
          "Adapters",
          model.adapters
            .map((each) => `${each.name}: ${each.path}${each.scale === 1 ? "" : ` (scale ${each.scale})`}`)
            .join("\n"),
        ],
        ["Settings", settingLines(model.settings)],
        ["Loaded with", settingLines(model.load_settings)],
        ["System", model.system],
        [
          "Messages",
          model.messages
            ?.map(({ role, content }) => `${role}: ${firstLine(content, "--modelfile")}`)
            .join("\n"),
        ],
        ["Template", model.template && firstLine(model.template, "--template")],
        ["License", model.license && firstLine(model.license, "--license")],
        ["Notes", model.notes?.join("\n")],
      ];
      const known = fields.flatMap(([title, value]) =>
        value === undefined || value === ""
          ? []
          : value.split("\n").map((line, index) => [index === 0 ? title : "", line] as const),
      );
      return writeLines(io.stdout, formatFields(known).map(printable));
    });
}

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

/** Result of a deletion in words; it depends on the model's source. */
function describeDeletion({ alias, source }: z.infer<typeof deleteResultSchema>): string {
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
        else await writeLine(io.stdout, describeDeletion(answer));
      }
    });
}
