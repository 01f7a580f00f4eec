import { readFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import { toError } from "../../errors/service-error.ts";
import { usageError } from "../cli-error.ts";
import { parseInteger, parseNumber } from "./common-options.ts";

export interface GenerationOptions {
  model?: string;
  system?: string;
  temperature?: number;
  topP?: number;
  topK?: number;
  maxTokens?: number;
  seed?: number;
  format?: string;
  think?: boolean;
  hideThinking?: boolean;
  verbose?: boolean;
}

/** Adds the options of {@link GenerationOptions} to a command. */
export function withGenerationOptions(command: Command): Command {
  return command
    .option("-m, --model <name>", "model to use; the daemon's default model when absent")
    .option("-s, --system <text>", "system prompt")
    .option("-t, --temperature <number>", "sampling temperature", parseNumber)
    .option("--top-p <number>", "nucleus sampling", parseNumber)
    .option("--top-k <n>", "top-k sampling", parseInteger(0))
    .option("-n, --max-tokens <n>", "longest answer in tokens", parseInteger(1))
    .option("--seed <n>", "seed of the sampling", parseInteger(0))
    .option("--format <format>", 'format of the answer: "json", a JSON schema, or a file that holds one')
    .addOption(new Option("--think", "let a model that can reason think first"))
    .addOption(new Option("--no-think", "do not let it think first"))
    .option("--hide-thinking", "do not show the reasoning")
    .option("-v, --verbose", "show statistics after the answer");
}

/** Request fields of these options; absent ones are left to the model and the daemon. */
export async function generationFields(options: GenerationOptions): Promise<Record<string, unknown>> {
  return {
    model: options.model,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    max_tokens: options.maxTokens,
    seed: options.seed,
    format: options.format === undefined ? undefined : await readFormat(options.format),
    think: options.think,
  };
}

async function readFormat(format: string): Promise<unknown> {
  if (format === "json") return format;
  try {
    const schema: unknown = JSON.parse(
      format.trimStart().startsWith("{") ? format : await readFile(format, "utf8"),
    );
    return schema;
  } catch (error) {
    const reason = toError(error).message;
    throw usageError(`--format is not "json", a JSON schema or a file that holds one: ${reason}`);
  }
}
