import path from "node:path";
import { describe, expect, it } from "vitest";
import { createGgufInspector } from "../../../../src/models/gguf/inspect-gguf.ts";
import {
  array,
  f32,
  type GgufFile,
  type GgufValue,
  string,
  u32,
  u64,
  writeGguf,
} from "../../../support/gguf-writer.ts";
import { tinyBert, tinyLlama } from "../../../support/tiny-models.ts";
import { temporaryFolder } from "../temporary-folder.ts";

async function inspect(model: GgufFile): Promise<unknown> {
  const file = path.join(await temporaryFolder(), "model.gguf");
  writeGguf(file, model);
  return await createGgufInspector()([file]);
}

function without(key: string, { metadata, tensors }: GgufFile = tinyLlama()): GgufFile {
  return { metadata: Object.fromEntries(Object.entries(metadata).filter(([name]) => name !== key)), tensors };
}

/** An encoder like published ones, whose special tokens have the default ids 100 to 102. */
function encoderWithDefaultTokenIds(): GgufFile {
  const { metadata, tensors } = without("tokenizer.ggml.seperator_token_id", tinyBert());
  const words = Array.from({ length: 103 }, (_, at) => `word${at}`);
  const types = array(
    "i32",
    words.map(() => 1),
  );
  const vocabulary = { "tokenizer.ggml.tokens": array("string", words), "tokenizer.ggml.token_type": types };
  return { tensors, metadata: { ...metadata, ...vocabulary } };
}

const tokens = (count: number): GgufValue =>
  array(
    "f32",
    Array.from({ length: count }, () => 0),
  );

describe("a header that loads, but could never work", () => {
  it.each<[string, Record<string, GgufValue>, RegExp]>([
    ["a context of no token", { "llama.context_length": u32(0) }, /its context length is 0/],
    ["a context of 2^31 tokens", { "llama.context_length": u32(2 ** 31) }, /context length is 2147483648/],
    ["a context of 2^64 tokens", { "llama.context_length": u64(2n ** 64n - 1n) }, /is out of all bounds/],
    ["a context of half a token", { "llama.context_length": f32(0.5) }, /its context length is out of/],
    ["a context in words", { "llama.context_length": string("long") }, /context length is not a number/],
    ["embeddings of no number", { "llama.embedding_length": u32(0) }, /its embedding length is 0/],
    ["no blocks", { "llama.block_count": u32(0) }, /its block count is 0/],
    ["more blocks than tensors", { "llama.block_count": u32(4000) }, /claims 4000 blocks and has 20 tensors/],
    ["four billion blocks", { "llama.block_count": u32(2 ** 32 - 1) }, /its block count is 4294967295/],
    ["an unknown way of pooling", { "llama.pooling_type": u32(64) }, /pooling type is 64/],
    ["no heads", { "llama.attention.head_count": u32(0) }, /it has no attention heads/],
    ["3.4e38 heads", { "llama.attention.head_count": f32(3.4e38) }, /heads is out of all bounds/],
    [
      "3.4e38 heads with keys",
      { "llama.attention.head_count_kv": f32(3.4e38) },
      /values is out of all bound/,
    ],
    ["keys of 2^63 numbers", { "llama.attention.key_length": u64(2n ** 63n) }, /keys is out of all bounds/],
    ["values of words", { "llama.attention.value_length": string("x") }, /attention values is not a number/],
    ["a vocabulary of the type no_vocab", { "tokenizer.ggml.model": string("no_vocab") }, /no vocabulary/],
    ["an empty vocabulary", { "tokenizer.ggml.tokens": array("string", []) }, /no vocabulary/],
    ["numbers for tokens", { "tokenizer.ggml.tokens": array("u32", [1, 2, 3]) }, /no vocabulary/],
    ["fewer scores than tokens", { "tokenizer.ggml.scores": tokens(5) }, /list of scores does not match/],
    [
      "scores of another type",
      { "tokenizer.ggml.scores": array("u8", [1]) },
      /list of scores does not match/,
    ],
    [
      "one token type",
      { "tokenizer.ggml.token_type": array("i32", [1]) },
      /list of token types does not match/,
    ],
    [
      "a megabyte of template",
      { "tokenizer.chat_template": string("x".repeat(2 ** 20 + 1)) },
      /chat template has/,
    ],
  ])("is rejected for %s", async (_, metadata, message) => {
    await expect(inspect(tinyLlama({ metadata }))).rejects.toMatchObject({
      code: "invalid_model_file",
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ["llama.context_length", /its context length is missing/],
    ["llama.block_count", /its block count is missing/],
    ["tokenizer.ggml.model", /no vocabulary/],
    ["tokenizer.ggml.tokens", /no vocabulary/],
  ])("is rejected if %s is missing", async (key, message) => {
    await expect(inspect(without(key))).rejects.toMatchObject({
      code: "invalid_model_file",
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ["bos_token_id", /its vocabulary has no token to begin a text with/],
    ["seperator_token_id", /its vocabulary has no token to end a text with/],
    ["unknown_token_id", /its vocabulary has no token for words that it does not know/],
  ])("is rejected if an encoder's %s is neither set nor in its small vocabulary", async (name, message) => {
    const key = `tokenizer.ggml.${name}`;
    const bert = tinyBert();
    const beyond = { ...bert, metadata: { ...bert.metadata, [key]: u32(2 ** 32 - 1) } };
    for (const model of [without(key, bert), beyond]) {
      await expect(inspect(model)).rejects.toMatchObject({
        code: "invalid_model_file",
        message: expect.stringMatching(message),
      });
    }
  });
});

describe("a GGUF file in Ollama's own format", () => {
  const llama = tinyLlama();
  const patches = { name: "v.patch_embd.weight", shape: [32], type: "F32", data: { fill: 0 } } as const;

  it.each<[string, GgufFile]>([
    ["with an image encoder inside", { ...llama, tensors: [...llama.tensors, patches] }],
    ["of an architecture that llama.cpp names differently", tinyLlama({ architecture: "gptoss" })],
  ])("is rejected %s", async (_, model) => {
    await expect(inspect(model)).rejects.toMatchObject({
      code: "invalid_model_file",
      message: expect.stringMatching(/in a form that only Ollama reads; get the model from the hub/),
    });
  });
});

describe("a header of a usable model", () => {
  it.each<[string, GgufFile]>([
    ["with attention", tinyLlama()],
    ["an encoder", tinyBert()],
    ["an encoder with special tokens at their default ids", encoderWithDefaultTokenIds()],
    [
      "without attention and heads",
      tinyLlama({ metadata: { "llama.attention.head_count": u32(0), "llama.ssm.conv_kernel": u32(4) } }),
    ],
    [
      "with attention in some blocks",
      tinyLlama({ metadata: { "llama.attention.head_count": array("u32", [0, 4]) } }),
    ],
  ])("is accepted: %s", async (_, model) => {
    await expect(inspect(model)).resolves.toMatchObject({ auxiliary: undefined });
  });
});
