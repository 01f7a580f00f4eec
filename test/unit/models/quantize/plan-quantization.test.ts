import path from "node:path";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { createGgufInspector } from "../../../../src/models/gguf/inspect-gguf.ts";
import { findFileType } from "../../../../src/models/quantize/quantize-options.ts";
import { planQuantization } from "../../../../src/models/quantize/plan-quantization.ts";
import { type GgufFile, u16, u32, i32, writeGguf } from "../../../support/gguf-writer.ts";
import { tinyLlama } from "../../../support/tiny-models.ts";
import { temporaryFolder } from "../temporary-folder.ts";

async function written(file: GgufFile, name = "model.gguf"): Promise<string> {
  const target = path.join(await temporaryFolder(), name);
  writeGguf(target, file);
  return target;
}

const Q4_0 = findFileType("q4_0");

describe("planQuantization()", () => {
  test("has the summary of the new file", async () => {
    const source = await written(tinyLlama({ weights: "F16" }));
    const before = await createGgufInspector()([source]);
    const { summary, fileSize, sourceBytes, bitsPerWeight } = await planQuantization([source], Q4_0, false);
    expect(summary).toMatchObject({ quantization: "Q4_0", fileSize, parameters: before.parameters });
    expect(fileSize).toBeLessThan(before.fileSize / 2);
    expect(sourceBytes).toBeLessThan(before.fileSize);
    expect(bitsPerWeight).toBeGreaterThan(4.5);
    expect(bitsPerWeight).toBeLessThan(8);
  });

  test("joins shards and drops their keys", async () => {
    const singleFile = tinyLlama();
    const folder = await temporaryFolder();
    const half = Math.floor(singleFile.tensors.length / 2);
    const shard = (no: number, tensors: GgufFile["tensors"], metadata: GgufFile["metadata"]): string => {
      const file = path.join(folder, `model-0000${no + 1}-of-00002.gguf`);
      const count = i32(singleFile.tensors.length);
      const split = { "split.no": u16(no), "split.count": u16(2), "split.tensors.count": count };
      writeGguf(file, { metadata: { ...metadata, ...split }, tensors });
      return file;
    };
    const first = shard(0, singleFile.tensors.slice(0, half), singleFile.metadata);
    const second = shard(1, singleFile.tensors.slice(half), {});
    const joined = await planQuantization([first, second], Q4_0, false);
    const single = await planQuantization([await written(singleFile)], Q4_0, false);
    expect(joined.header).toEqual(single.header);
    expect(new Set(joined.job.tensors.map(({ file }) => file))).toEqual(new Set([0, 1]));
  });

  test("keeps the alignment of the file", async () => {
    const model = tinyLlama();
    const aligned = { ...model, metadata: { ...model.metadata, "general.alignment": u32(16) } };
    const { header, job } = await planQuantization([await written(aligned)], Q4_0, false);
    expect(job.alignment).toBe(16);
    expect(header.length % 16).toBe(0);
  });

  test("rejects a quantized model unless that is allowed", async () => {
    const source = await written(tinyLlama({ weights: "Q8_0" }));
    await expect(planQuantization([source], Q4_0, false)).rejects.toMatchObject({
      code: "unsupported_feature",
      message: expect.stringContaining("allow_requantize"),
    });
    const { summary } = await planQuantization([source], Q4_0, true);
    expect(summary.quantization).toBe("Q4_0");
  });

  test("counts the tensors whose rows the type does not fit", async () => {
    const source = await written(tinyLlama({ embedding: 96, feedForward: 160 }));
    expect((await planQuantization([source], findFileType("Q4_K_M"), false)).fallbackTensors).toBe(14);
  });

  test("rejects a quantization that does not fit the rows, and lists those that do", async () => {
    const source = await written(tinyLlama({ feedForward: 172 }));
    const message = /^Q8_0 cannot be used for this model.* rows of 172 weights.*; choose one of (.*)\.$/;
    const refusal = await planQuantization([source], findFileType("Q8_0"), false).catch(
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({ code: "invalid_parameter", param: "quantization" });
    const others = (refusal instanceof ServiceError && message.exec(refusal.message)?.[1]?.split(", ")) || [];
    expect(others).toEqual(expect.arrayContaining(["F16", "Q6_K", "Q4_K_M"]));
    expect(others).not.toContain("Q4_0");
    for (const name of others) await planQuantization([source], findFileType(name), false);
  });

  test("lists only float types if no blocks fit the rows of the output", async () => {
    const source = await written(tinyLlama({ embedding: 40, heads: 2, kvHeads: 2 }));
    await expect(planQuantization([source], Q4_0, false)).rejects.toMatchObject({
      code: "invalid_parameter",
      message: expect.stringMatching(
        /blocks of Q8_0, of 32 weights, do not divide; choose one of F16, BF16\.$/,
      ),
    });
  });
});

describe("names of quantizations", () => {
  test.each([
    ["q4_k", "Q4_K_M"],
    ["Q5_K_S", "Q5_K_S"],
    ["bf16", "BF16"],
  ])("%s is %s", (name, found) => {
    expect(findFileType(name).name).toBe(found);
  });

  test.each(["IQ2_M", "Q2_K_S", "IQ3_XXS"])("%s needs an importance matrix", (name) => {
    expect(() => findFileType(name)).toThrow(/needs an importance matrix/);
  });
});
