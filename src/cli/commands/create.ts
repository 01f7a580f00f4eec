import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { createResultSchema, quantizeLineSchema } from "../../api/wire/models.ts";
import { isSystemError, toError } from "../../errors/service-error.ts";
import { looksLikePath } from "../../models/names/name-resolver.ts";
import { usageError } from "../cli-error.ts";
import { type CliIo, readStdin, writeJson, writeLine } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import { formatBytes } from "../../json/quantities.ts";
import { printable } from "../terminal/format.ts";
import { describeQuantizing, ProgressBar } from "../terminal/progress-display.ts";

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

interface QuantizeCommandOptions extends ClientOptions {
  quantization: string;
  allowRequantize?: boolean;
}

/** daybreak quantize <source> <destination> */
export function quantizeCommand(io: CliIo): Command {
  return clientCommand("quantize", "print each progress report of the daemon as a line of JSON")
    .description("make a smaller model of one in F32, F16 or BF16; Ctrl-C cancels it")
    .argument("<source>", "name of the model, hub spec, or path of a GGUF file")
    .argument("<destination>", "name of the new model")
    .option("-q, --quantization <type>", "such as Q4_K_M, Q8_0 or Q6_K", "Q4_K_M")
    .option("--allow-requantize", "also quantize what is quantized already, which costs quality")
    .action(async (source: string, destination: string, options: QuantizeCommandOptions) => {
      const client = connect(io, options);
      const lines = client.lines(quantizeLineSchema, "/api/models/quantize", {
        // The working directory of the daemon may be another one.
        source: looksLikePath(source) && !source.startsWith("~") ? path.resolve(source) : source,
        destination,
        quantization: options.quantization,
        allow_requantize: options.allowRequantize,
        stream: true,
      });
      using bar = new ProgressBar(io.stderr);
      const startedAt = performance.now();
      for await (const line of lines) {
        if (options.json) await writeJson(io.stdout, line);
        else if (line.status === "quantizing") {
          if (!io.stderr.isTTY) continue;
          const text = describeQuantizing(line, performance.now() - startedAt);
          bar.update(line.completed_bytes, line.total_bytes, text);
        } else {
          bar.end();
          const { source_bytes: before, size_bytes: size, bits_per_weight: bits } = line;
          await writeLine(
            io.stdout,
            `Quantized ${printable(line.model)} to ${line.quantization}: ${formatBytes(before)} became ${formatBytes(size)}, ${bits.toFixed(2)} bits per weight.`,
          );
          if (line.fallback_tensors > 0) {
            await writeLine(
              io.stdout,
              `${line.fallback_tensors} tensors have another type, because the blocks of the usual one do not divide their rows.`,
            );
          }
        }
      }
    });
}
