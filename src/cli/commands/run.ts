import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import type { z } from "zod";
import { toError } from "../../errors/service-error.ts";
import { startDaemonIfNone } from "../background/start-daemon.ts";
import { chat } from "./chat.ts";
import { usageError } from "../cli-error.ts";
import { type CliIo, readStdin, writeJson } from "../cli-io.ts";
import { AnswerDisplay, generateLineSchema } from "../terminal/answer-display.ts";
import { connect } from "../client/daemon-address.ts";
import { modelFromFirstWord, withLoadedModel } from "../client/find-model.ts";
import { clientCommand, type ClientOptions, collect } from "../options/common-options.ts";
import {
  generationFields,
  type GenerationOptions,
  withGenerationOptions,
} from "../options/generation-options.ts";

interface RunOptions extends ClientOptions, GenerationOptions {
  image?: string[];
}

/** daybreak run [prompt…] */
export function runCommand(io: CliIo): Command {
  return withGenerationOptions(clientCommand("run", "print the whole answer as one JSON object"))
    .description("answer one prompt; starts a daemon in the background when none runs")
    .argument(
      "[prompt...]",
      "the prompt; - stands for standard input, which is also read when there is no prompt; the first word may name the model",
    )
    .option("-i, --image <file>", "an image to look at; may be given several times", collect)
    .action(async (words: string[], options: RunOptions) => {
      const piped = words.length === 0 ? await readPrompt(io, words) : undefined;
      const images = options.image && (await readImages(options.image));
      const fields = await generationFields(options);
      await startDaemonIfNone(io, options);
      const client = connect(io, options);
      const firstWordModel =
        options.model === undefined ? await modelFromFirstWord(client, words) : undefined;
      const model = options.model ?? firstWordModel;
      const promptWords = firstWordModel === undefined ? words : words.slice(1);
      // As in Ollama, a model's name alone starts a chat.
      if (firstWordModel !== undefined && promptWords.length === 0 && io.stdin.isTTY && !images)
        return await chat(io, { ...options, model: firstWordModel });
      const prompt = piped ?? (await readPrompt(io, promptWords));
      const request = { prompt, system: options.system, images, ...fields, model };
      const generate = async (): Promise<void> => {
        if (options.json) {
          return writeJson(
            io.stdout,
            await client.json(generateLineSchema, "POST", "/api/generate", request),
          );
        }
        const lines = client.lines(generateLineSchema, "/api/generate", { ...request, stream: true });
        return showAnswer(io, lines, options);
      };
      await withLoadedModel(io, client, model, generate);
    });
}

async function showAnswer(
  io: CliIo,
  lines: AsyncIterable<z.infer<typeof generateLineSchema>>,
  options: RunOptions,
): Promise<void> {
  const display = new AnswerDisplay(io, options);
  let last: z.infer<typeof generateLineSchema> | undefined;
  try {
    for await (const line of lines) {
      await display.thinking(line.thinking ?? "");
      await display.text(line.response);
      last = line;
    }
  } finally {
    await display.end();
  }
  if (last) await display.summarize(last);
}

async function readPrompt(io: CliIo, words: readonly string[]): Promise<string> {
  if (words.length === 0 && io.stdin.isTTY) {
    throw usageError('No prompt given. Pass it as an argument (daybreak run "...") or on standard input.');
  }
  const piped = words.length === 0 || words.includes("-") ? await readStdin(io) : "";
  const prompt =
    words.length === 0 ? piped : words.map((word) => (word === "-" ? `\n${piped}\n` : word)).join(" ");
  if (prompt.trim() === "") throw usageError("The prompt is empty.");
  return prompt.trim();
}

async function readImages(files: readonly string[]): Promise<string[]> {
  try {
    return await Promise.all(files.map((file) => readFile(file, "base64")));
  } catch (error) {
    throw usageError(`Cannot read the image: ${toError(error).message}`);
  }
}
