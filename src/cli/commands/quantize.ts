import path from "node:path";
import type { Command } from "commander";
import { quantizeLineSchema } from "../../dialects/management/quantize-schemas.ts";
import { looksLikePath } from "../../models/names/parse-file-path.ts";
import type { CliIo } from "../cli-io.ts";
import { connect } from "../client/connect.ts";
import { clientCommand, type ClientOptions } from "../options/client-command.ts";
import { printable } from "../terminal/printable.ts";
import { formatBytes } from "../terminal/quantity.ts";
import { QuantizeDisplay } from "../terminal/quantize-display.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

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
      const lines = client.lines(quantizeLineSchema, "POST", "/api/models/quantize", {
        // The daemon may run in another folder.
        source: looksLikePath(source) && !source.startsWith("~") ? path.resolve(source) : source,
        destination,
        quantization: options.quantization,
        allow_requantize: options.allowRequantize,
        stream: true,
      });
      using display = new QuantizeDisplay(io.stderr);
      for await (const line of lines) {
        if (options.json) await writeJson(io.stdout, line);
        else if (line.status === "quantizing") display.show(line);
        else {
          display.end();
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
