import type { Command } from "commander";
import { modelDetailSchema, modelfileSchema } from "../../http/models/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { modelPath } from "../client/model-path.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { formatBytes, formatCount } from "../terminal/quantity.ts";
import { formatFields } from "../terminal/table.ts";
import { write, writeJson, writeLine } from "../terminal/write.ts";

/** daybreak show <model> */
export function showCommand(io: CliIo): Command {
  return clientCommand("show")
    .description("show what is known about a model")
    .argument("<model>", "name of the model")
    .option("--modelfile", "print a Modelfile that would make this model again")
    .action(async (name: string, options: ClientOptions & { modelfile?: boolean }) => {
      const client = connect(io, options);
      if (options.modelfile) {
        const answer = await client.json(modelfileSchema, "GET", modelPath(name, "modelfile"));
        if (options.json) return writeJson(io.stdout, answer);
        return write(io.stdout, answer.modelfile.replace(/\n*$/, "\n"));
      }
      const model = await client.json(modelDetailSchema, "GET", modelPath(name));
      if (options.json) return writeJson(io.stdout, model);
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
        ["Context", `${model.context_size} tokens (trained for ${model.trained_context_size})`],
        ["Vocabulary", `${model.vocab_size} tokens`],
        ["GPU layers", `${model.gpu_layers} of ${model.block_count}`],
        ["Purpose", model.purpose],
        ["Capabilities", capabilities.join(", ") || "text only"],
        ["Made from", model.from],
        ["File", model.files.join("\n")],
        ["Projector", model.projector],
        ["System", model.system],
      ];
      const known = fields.flatMap(([title, value]) =>
        value === undefined
          ? []
          : value.split("\n").map((line, index) => [index === 0 ? title : "", line] as const),
      );
      for (const line of formatFields(known)) await writeLine(io.stdout, line);
      return undefined;
    });
}
