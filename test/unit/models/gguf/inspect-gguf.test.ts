import { stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { gguf } from "@huggingface/gguf";
import { describe, expect, it } from "vitest";
import { createGgufInspector, readGgufHeader } from "../../../../src/models/gguf/inspect-gguf.ts";
import { array, bool, string, u32, writeGguf, type GgufFile } from "../../../support/gguf-writer.ts";
import {
  CHATML_TEMPLATE,
  shardsOf,
  tinyBert,
  tinyLlama,
  tinyLora,
  tinyProjector,
  tokenId,
} from "../../../support/tiny-models.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Id of the first additional word in a {@link tinyLlama}. */
const FIRST_WORD = tokenId(tinyLlama({ words: ["<first>"] }), "<first>");

async function write(file: GgufFile, name = "model.gguf"): Promise<string> {
  const target = path.join(await temporaryFolder(), name);
  writeGguf(target, file);
  return target;
}

const shardOf = (index: number, of = 3): GgufFile => shardsOf(tinyLlama(), of)[index] ?? tinyLlama();
const [shard1, shard2, shard3] = [shardOf(0), shardOf(1), shardOf(2)] as const;
const withKeys = ({ metadata, tensors }: GgufFile, keys: GgufFile["metadata"]): GgufFile => ({
  metadata: { ...metadata, ...keys },
  tensors,
});

describe("the GGUF inspector", () => {
  it("summarizes a model", async () => {
    const file = await write(
      tinyLlama({ name: "tiny", context: 256, weights: "Q8_0", chatTemplate: CHATML_TEMPLATE }),
    );

    const summary = await createGgufInspector()([file]);

    expect(summary).toMatchObject({
      architecture: "llama",
      name: "tiny",
      contextLength: 256,
      embeddingLength: 64,
      headCount: 4,
      blockCount: 2,
      quantization: "Q8_0",
      fileSize: (await stat(file)).size,
      chatTemplate: CHATML_TEMPLATE,
      purpose: "generate",
      auxiliary: undefined,
    });
  });

  it("agrees with an independent reader on weights and vocabulary", async () => {
    const file = await write(tinyLlama());
    const oracle = await gguf(file, { allowLocalFile: true, computeParametersCount: true });

    const summary = await createGgufInspector()([file]);

    expect(summary.parameters).toBe(oracle.parameterCount);
    const tokens = Object.entries(oracle.metadata).find(([key]) => key === "tokenizer.ggml.tokens")?.[1];
    expect(tokens).toHaveLength(summary.vocabSize);
  });

  it("reads a vocabulary of realistic size", async () => {
    const words = Array.from({ length: 200_000 }, (_, at) => `word${at}`);
    const summary = await createGgufInspector()([await write(tinyLlama({ words }))]);
    expect(summary.vocabSize).toBe(FIRST_WORD + words.length);
  });

  it("adds up the weights of all shards", async () => {
    const folder = await temporaryFolder();
    const model = tinyLlama();
    const complete = path.join(folder, "whole.gguf");
    writeGguf(complete, model);
    const files = shardsOf(model, 3).map((shard, index) => {
      const file = path.join(folder, `split-0000${index + 1}-of-00003.gguf`);
      writeGguf(file, shard);
      return file;
    });

    const inspect = createGgufInspector();

    const [sharded, single] = [await inspect(files), await inspect([complete])];
    expect(sharded.parameters).toBe(single.parameters);
    expect(sharded.architecture).toBe("llama");
    expect(sharded.fileSize).toBeGreaterThan(single.fileSize);
  });

  it("adds up weight bytes by use, in one file and in shards alike", async () => {
    const model = tinyLlama({ embedding: 64, feedForward: 128, blocks: 2, heads: 4, kvHeads: 2 });
    const complete = await write(model);
    const folder = await temporaryFolder();
    const shards = shardsOf(model, 3).map((shard, index) => {
      const file = path.join(folder, `split-0000${index + 1}-of-00003.gguf`);
      writeGguf(file, shard);
      return file;
    });
    const inspect = createGgufInspector();
    const { weightBytes, vocabSize } = await inspect([complete]);
    const inABlock = 2 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128;
    expect(weightBytes).toEqual({
      blocks: 2 * inABlock * 4,
      largestInBlocks: 64 * 128 * 4,
      embedding: vocabSize * 64 * 4,
      output: 0,
    });
    expect((await inspect(shards)).weightBytes).toEqual(weightBytes);
  });

  it("rejects a shard without the others", async () => {
    const [first] = shardsOf(tinyLlama(), 3);
    const file = await write(first!);

    await expect(createGgufInspector()([file])).rejects.toMatchObject({ code: "invalid_model_file" });
  });

  it.each([
    ["in another order", [shard1, shard3, shard2], /the file named shard 2 of 3 is not that shard/],
    ["with one twice", [shard1, shard1, shard3], /the file named shard 2 of 3 is not that shard/],
    ["of two splits", [shard1, shardOf(1, 4), shard3], /have 18 tensors together/],
    ["that lack tensors", [shard1, { ...shard2, tensors: [] }, shard3], /have 13 tensors together/],
    [
      "of which the first says it is all",
      [withKeys(shard1, { "split.count": u32(1) }), shard2, shard3],
      /one of 3 shards, but/,
    ],
    [
      "of which the first counts in words",
      [withKeys(shard1, { "split.count": string("3") }), shard2, shard3],
      /one of 3 shards, but/,
    ],
    ["without numbers", [shard1, { ...shard2, metadata: {} }, shard3], /the file named shard 2 of 3/],
  ])("rejects shards %s", async (_what, shards, message) => {
    const folder = await temporaryFolder();
    const files = shards.map((each, index) => {
      const file = path.join(folder, `split-0000${index + 1}-of-00003.gguf`);
      writeGguf(file, each);
      return file;
    });
    await expect(createGgufInspector()(files)).rejects.toMatchObject({
      code: "invalid_model_file",
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ["an embedding model", tinyBert(), { purpose: "embed", auxiliary: undefined, kvBytesPerToken: 0 }],
    ["a reranker", tinyBert({ rerank: true }), { purpose: "rerank", auxiliary: undefined }],
    [
      "a decoder that embeds",
      tinyLlama({ metadata: { "llama.pooling_type": u32(3) } }),
      { purpose: "embed" },
    ],
    [
      "a rank model without the head for it",
      tinyLlama({ metadata: { "llama.pooling_type": u32(4) } }),
      { purpose: "embed" },
    ],
    [
      "tokens for infilling by their texts",
      tinyLlama({ words: ["<fim_suffix>", "<fim_middle>", "<fim_prefix>"] }),
      { infill: { prefix: "<fim_prefix>", suffix: "<fim_suffix>", middle: "<fim_middle>" } },
    ],
    [
      "tokens for infilling by the keys that name them, which come first",
      tinyLlama({
        words: ["[PREFIX]", "[SUFFIX]", "[MIDDLE]", "<fim_prefix>"],
        metadata: {
          "tokenizer.ggml.fim_pre_token_id": u32(FIRST_WORD),
          "tokenizer.ggml.fim_suf_token_id": u32(FIRST_WORD + 1),
          "tokenizer.ggml.middle_token_id": u32(FIRST_WORD + 2),
        },
      }),
      { infill: { prefix: "[PREFIX]", suffix: "[SUFFIX]", middle: "[MIDDLE]" } },
    ],
    [
      "that a part of the tokens for infilling is not enough",
      tinyLlama({ words: ["<fim_prefix>", "<fim_suffix>"] }),
      { infill: undefined },
    ],
    [
      "the tokens that begin a tool call",
      tinyLlama({ words: ["<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<tool_response>", "<b>"] }),
      { toolCallTokens: [FIRST_WORD, FIRST_WORD + 2] },
    ],
    ["a LoRA adapter", tinyLora(), { auxiliary: "adapter" }],
    ["a projector", tinyProjector(), { auxiliary: "projector" }],
    [
      "a file type by its name",
      tinyLlama({ metadata: { "general.file_type": u32(15) } }),
      { quantization: "Q4_K_M" },
    ],
  ])("recognizes %s", async (_what, model, expected) => {
    expect(await createGgufInspector()([await write(model)])).toMatchObject(expected);
  });

  it.each([
    ["grouped heads: 2 layers, 2 KV heads of 16 and 16", {}, 2 * 2 * (16 + 16) * 2],
    [
      "heads of their own size",
      { "llama.attention.key_length": u32(24), "llama.attention.value_length": u32(40) },
      2 * 2 * (24 + 40) * 2,
    ],
    [
      "KV heads that differ between layers",
      { "llama.attention.head_count_kv": array("u32", [0, 4]) },
      4 * (16 + 16) * 2,
    ],
  ])("computes the KV cache of %s", async (_what, metadata, expected) => {
    const file = await write(tinyLlama({ metadata }));
    expect((await createGgufInspector()([file])).kvBytesPerToken).toBe(expected);
  });

  it("reads a file once, and again after it has changed", async () => {
    const file = await write(tinyLlama({ name: "one" }));
    const inspect = createGgufInspector();
    const [one, other] = await Promise.all([inspect([file]), inspect([file])]);
    expect(one).toBe(other);

    writeGguf(file, tinyLlama({ name: "two" }));
    await utimes(file, 1, 1);

    expect((await inspect([file])).name).toBe("two");
  });

  it("does not store a long string, but records that it exists", async () => {
    const file = await write(
      tinyLlama({
        metadata: { "tokenizer.huggingface.json": string("x".repeat(2_000_000)), "some.flag": bool(true) },
      }),
    );

    const { metadata } = await readGgufHeader(file);

    expect(metadata.get("tokenizer.huggingface.json")).toEqual({ length: 2_000_000, numbers: undefined });
    expect(metadata.get("some.flag")).toBe(true);
  });

  it("reports a missing file, and one that is no GGUF file", async () => {
    const folder = await temporaryFolder();
    const text = path.join(folder, "text.gguf");
    await writeFile(text, "This is only a text, and it is long enough for a header.");
    const inspect = createGgufInspector();

    await expect(inspect([path.join(folder, "none.gguf")])).rejects.toMatchObject({
      code: "model_file_not_found",
    });
    await expect(inspect([text])).rejects.toMatchObject({ code: "invalid_model_file" });
    await expect(inspect([folder])).rejects.toMatchObject({ code: "invalid_model_file" });
  });
});
