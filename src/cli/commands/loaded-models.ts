import path from "node:path";
import { type Command, Option } from "commander";
import { z } from "zod";
import {
  LOAD_SETTINGS,
  type LoadSettings,
  loadSettingsSchema,
  nameLoadSettings,
} from "../../config/load-settings.ts";
import { loadResultSchema, modelListSchema, unloadResultSchema } from "../../api/wire/models.ts";
import { SPECULATIONS } from "../../models/model.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { modelPath } from "../client/find-model.ts";
import { clientCommand, type ClientOptions, parseInteger, parseNumber } from "../options/common-options.ts";
import { formatBytes, formatCount, formatDuration } from "../../json/quantities.ts";
import { describeContext, formatTable } from "../terminal/format.ts";

interface LoadCommandOptions extends ClientOptions, LoadSettings {
  path?: string;
  gpuLayers?: number;
  contextSize?: number;
  mmproj?: string;
  default?: boolean;
  draft?: string;
  speculation?: string;
}

/** Number that means all layers. */
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
    if (io.stderr.isTTY) await writeLine(io.stderr, `Loading ${name} ...`);
    const answer = await client.json(loadResultSchema, "POST", "/api/models/load", {
      alias: name,
      // The working directory of the daemon may be another one.
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
      `Loaded ${alias}: ${formatCount(parameters)} parameters, context of ${describeContext(answer)}, ${gpu_layers} layers on the GPU.`,
    );
  });
}

/** Options for how llama.cpp loads a model; absent ones are left to the model and the daemon. */
function loadSettingOptions(): Option[] {
  return [...LOAD_SETTINGS].flatMap(([name, field]) => {
    const { description = "" } = loadSettingsSchema.shape[field];
    const schema = loadSettingsSchema.shape[field].unwrap();
    const flag = name.replaceAll("_", "-");
    if (schema instanceof z.ZodBoolean) {
      const negative = new Option(`--no-${flag}`, `the opposite of --${flag}, where the model has that`);
      return [new Option(`--${flag}`, description), negative];
    }
    if (schema instanceof z.ZodEnum) {
      return [new Option(`--${flag} <value>`, description).choices(schema.options.map(String))];
    }
    return [new Option(`--${flag} <n>`, description).argParser(parseNumber)];
  });
}

/** daybreak unload <model…> */
export function unloadCommand(io: CliIo): Command {
  return clientCommand("unload", "print each answer of the daemon as a line of JSON")
    .description("take models out of memory; they stay on disk")
    .argument("<model...>", "names of the models")
    .action(async (names: string[], options: ClientOptions) => {
      const client = connect(io, options);
      for (const name of names) {
        const answer = await client.json(unloadResultSchema, "POST", modelPath(name, "unload"));
        if (options.json) await writeJson(io.stdout, answer);
        else await writeLine(io.stdout, `Unloaded ${answer.alias}.`);
      }
    });
}

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
        describeContext(model),
        String(model.gpu_layers),
        String(model.active_requests),
        until(model.expires_at),
      ]);
      const header = ["NAME", "MEMORY", "CONTEXT", "GPU LAYERS", "REQUESTS", "UNLOADS"];
      return writeLines(io.stdout, formatTable(header, rows));
    });
}

function until(expiresAt: string | undefined): string {
  if (expiresAt === undefined) return "by hand";
  return `in ${formatDuration(Math.max(0, Date.parse(expiresAt) - Date.now()))}`;
}
