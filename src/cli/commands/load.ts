import path from "node:path";
import { type Command, Option } from "commander";
import { type LoadSettings, nameLoadSettings } from "../../config/load-settings.ts";
import { loadResultSchema } from "../../dialects/management/model-schemas.ts";
import { SPECULATIONS } from "../../models/model.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { loadSettingOptions } from "../options/load-setting-options.ts";
import { parseInteger } from "../options/parse-number.ts";
import { contextInWords } from "../terminal/context-in-words.ts";
import { formatCount } from "../terminal/quantity.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

interface LoadCommandOptions extends ClientOptions, LoadSettings {
  path?: string;
  gpuLayers?: number;
  contextSize?: number;
  mmproj?: string;
  default?: boolean;
  draft?: string;
  speculation?: string;
}

/** -1 asks for all layers. */
const ALL_LAYERS = -1;

/** daybreak load <model> */
export function loadCommand(io: CliIo): Command {
  const command = clientCommand("load")
    .description("load a model into memory")
    .argument("<model>", "name of the model; with --path any name for it")
    .option("--path <file>", "GGUF file to load under this name")
    .option("--gpu-layers <n>", "layers on the GPU, -1 for all", parseInteger(ALL_LAYERS))
    .option(
      "--context-size <tokens>",
      "context window; by default as many as the model was trained for and the memory suits, at most 32768",
      parseInteger(1),
    )
    .option("--mmproj <file>", "vision projector")
    .option("--draft <file>", "draft model, which guesses tokens")
    .addOption(
      new Option("--speculation <kind>", "guess tokens and check several at once").choices(SPECULATIONS),
    )
    .option("--default", "make it the default model");
  for (const option of loadSettingOptions()) command.addOption(option);
  return command.action(async (name: string, options: LoadCommandOptions) => {
    const client = connect(io, options);
    // A large model takes its time.
    if (io.stderr.isTTY) await writeLine(io.stderr, `Loading ${name} ...`);
    const answer = await client.json(loadResultSchema, "POST", "/api/models/load", {
      alias: name,
      // The daemon may run in another folder.
      path: options.path && path.resolve(options.path),
      gpu_layers: options.gpuLayers,
      context_size: options.contextSize ?? 0,
      ...nameLoadSettings(options),
      mmproj: options.mmproj && path.resolve(options.mmproj),
      set_default: options.default,
      draft: options.draft && path.resolve(options.draft),
      speculation: options.speculation,
    });
    if (options.json) return writeJson(io.stdout, answer);
    const { alias, parameters, gpu_layers } = answer;
    return writeLine(
      io.stdout,
      `Loaded ${alias}: ${formatCount(parameters)} parameters, context of ${contextInWords(answer)}, ${gpu_layers} layers on the GPU.`,
    );
  });
}
