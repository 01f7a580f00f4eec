import type { Command } from "commander";
import type { z } from "zod";
import { modelDetailSchema, modelfileSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { modelPath } from "../client/model-path.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { contextInWords } from "../terminal/context-in-words.ts";
import { printable } from "../terminal/printable.ts";
import { formatBytes, formatCount } from "../terminal/quantity.ts";
import { formatFields } from "../terminal/table.ts";
import { write, writeJson, writeLine } from "../terminal/write.ts";

interface ShowOptions extends ClientOptions {
  modelfile?: boolean;
  template?: boolean;
  license?: boolean;
}

/** As PARAMETER takes them. */
function settingLines(settings: z.infer<typeof modelDetailSchema>["settings" | "load_settings"]): string {
  return Object.entries(settings)
    .flatMap(([name, value]) => [value].flat().map((each) => `${name} ${JSON.stringify(each)}`))
    .join("\n");
}

/** A text that may be long: how it begins, and how to see the rest. */
function firstLine(text: string, option: string): string {
  const [first = "", ...rest] = text.trim().split("\n");
  if (rest.length === 0 && first.length <= MAX_SHOWN) return first;
  return `${first.slice(0, MAX_SHOWN)} … (${option} prints it)`;
}

function wholeText(text = ""): string {
  return text === "" ? "" : printable(text).replace(/\n*$/, "\n");
}

/** Of a template or a license; fits a line beside its title. */
const MAX_SHOWN = 60;

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
      if (options.template) return write(io.stdout, wholeText(model.template));
      if (options.license) return write(io.stdout, wholeText(model.license));
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
        ["Context", contextInWords(model)],
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
      for (const line of formatFields(known)) await writeLine(io.stdout, printable(line));
      return undefined;
    });
}
