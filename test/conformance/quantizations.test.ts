import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import { bytesOf, chunksOf } from "../../src/engine/quantize/quantize-job.ts";
import { Quantizer } from "../../src/engine/quantize/quantizer.ts";
import { FILE_TYPES } from "../../src/models/quantize/quantize-options.ts";
import { planQuantization } from "../../src/models/quantize/plan-quantization.ts";
import { buildQuantizerImage } from "../../wasm/quantizer-image.ts";
import { writeGguf } from "../support/gguf-writer.ts";
import natives from "../support/native-quantizations.json" with { type: "json" };
import { QUANTIZATION_MODELS } from "../support/quantization-models.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-quantizations-"));
afterAll(() => rmSync(folder, { recursive: true }));

let quantizer: Quantizer;
beforeAll(async () => {
  const image = await buildQuantizerImage(readFileSync(STOCK_WASM_PATH));
  quantizer = await Quantizer.start(await WebAssembly.compile(image));
});

const records: Record<string, Record<string, string>> = natives;

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** scripts/test/record-quantized.ts has recorded the hashes of what native llama.cpp makes of these models. */
describe.each(Object.entries(QUANTIZATION_MODELS))("%s has the bytes of llama-quantize", (name, make) => {
  const source = path.join(folder, `${name}.gguf`);
  const native = records[name] ?? {};

  beforeAll(() => void writeGguf(source, make()));

  test("from the model that was recorded", () => {
    expect(sha256(readFileSync(source))).toBe(native["source"]);
  });

  test.each(FILE_TYPES)("as $name", async (fileType) => {
    const { header, job, fileSize } = await planQuantization([source], fileType, true);
    const file = readFileSync(source);
    const parts = [header];
    for (const piece of chunksOf({ ...job, threads: 1 })) {
      const input = file.subarray(piece.offset, piece.offset + bytesOf(piece.weights, piece.from));
      parts.push(Buffer.from(quantizer.convert(input, piece)));
    }
    const result = Buffer.concat(parts);
    expect(result.length).toBe(fileSize);
    expect(sha256(result)).toBe(native[fileType.name]);
  });
});
