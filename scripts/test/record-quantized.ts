#!/usr/bin/env node
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { FILE_TYPES } from "../../src/models/quantize/quantize-options.ts";
import { writeGguf } from "../../test/support/gguf-writer.ts";
import { QUANTIZATION_MODELS } from "../../test/support/quantization-models.ts";
import { installNative } from "../bench/cpu/native-engine.ts";

const HELP = `Records in test/support/native-quantizations.json the SHA-256 of what native llama.cpp makes of small models.

  node scripts/test/record-quantized.ts [--folder FOLDER]

  --folder FOLDER  where llama.cpp is installed, as node-llama-cpp ships it (default: a temporary one)

Calls llama_model_quantize() of its library, as llama-quantize does, by a program that gcc builds. For Linux on x64,
where the compiler contracts no multiplications and additions, like WebAssembly.`;

const RECORD = path.join(import.meta.dirname, "..", "..", "test/support/native-quantizations.json");
const BINARIES = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64";

/** llama_model_quantize_params of llama.h, in which two fields are set. */
const PROGRAM = `
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
struct params {
    int32_t threads; int file_type; int output_type; int embedding_type;
    bool allow_requantize, quantize_output, only_copy, pure, keep_split, dry_run;
    const void *imatrix, *kv_overrides, *tensor_types, *prune_layers;
};
struct params llama_model_quantize_default_params(void);
uint32_t llama_model_quantize(const char *input, const char *output, const struct params *params);
int main(int count, char **arguments) {
    struct params params = llama_model_quantize_default_params();
    params.file_type = atoi(arguments[3]);
    params.allow_requantize = true;
    return (int)llama_model_quantize(arguments[1], arguments[2], &params);
}
`;

const { values } = parseArgs({
  options: { folder: { type: "string" }, help: { type: "boolean", short: "h" } },
});
if (values.help) console.log(HELP);
else await record();

async function record(): Promise<void> {
  const temporary = mkdtempSync(path.join(os.tmpdir(), "daybreak-quantized-"));
  try {
    const folder = path.resolve(values.folder ?? temporary);
    await installNative(folder);
    const program = build(temporary, path.join(folder, BINARIES));
    const records = Object.entries(QUANTIZATION_MODELS).map(([name, make]) => {
      const source = path.join(temporary, "source.gguf");
      const result = path.join(temporary, "result.gguf");
      writeGguf(source, make());
      const hashes = FILE_TYPES.map(({ name: type, number }) => {
        execFileSync(program, [source, result, String(number)], { stdio: "ignore" });
        return [type, sha256(result)] as const;
      });
      return [name, { source: sha256(source), ...Object.fromEntries(hashes) }] as const;
    });
    writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(records), undefined, 2)}\n`);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

function build(folder: string, binaries: string): string {
  const source = path.join(folder, "quantize.c");
  const program = path.join(folder, "quantize");
  writeFileSync(source, PROGRAM);
  const libraries = ["libllama.v0.5.0.so", "libggml.v0.5.0.so", "libggml-base.so"].map(
    (name) => `-l:${name}`,
  );
  execFileSync("gcc", [source, "-o", program, `-L${binaries}`, ...libraries, `-Wl,-rpath,${binaries}`]);
  return program;
}

function sha256(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
