import { f32, string, u32, u64 } from "../../../../test/support/gguf-writer.ts";
import type { Recipe } from "./recipe.ts";

const template = (jinja: string): Recipe => ({
  base: "llama",
  changes: [{ key: "tokenizer.chat_template", value: string(jinja) }],
});
const key = (name: string, value: Parameters<typeof u32>[0]): Recipe => ({
  base: "llama",
  changes: [{ key: name, value: u32(value) }],
});

/**
 * Files that once ended an engine, took its machine's memory, ran without an end, loaded and could not work, or were
 * refused in words that only llama.cpp's developers understand; and with which code each is refused now.
 */
export const CRASH_CORPUS: readonly (readonly [what: string, recipe: Recipe, code: string])[] = [
  [
    "a chat template that doubles a text forty times",
    template(
      "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}",
    ),
    "invalid_template",
  ],
  [
    "a chat template that counts to a billion",
    template("{{ range(1000000000)|length }}"),
    "invalid_template",
  ],
  [
    "a chat template that calls itself",
    template("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}"),
    "invalid_template",
  ],
  [
    "a chat template nested twenty thousand deep",
    template(`{{ ${"(".repeat(20_000)}1${")".repeat(20_000)} }}`),
    "invalid_template",
  ],
  ["a chat template of eighty thousand tokens", template("<tool_call>".repeat(80_000)), "invalid_template"],
  ["a context of no token", key("llama.context_length", 0), "invalid_model_file"],
  ["a context of 2^31 tokens", key("llama.context_length", 2 ** 31), "invalid_model_file"],
  ["embeddings of no number", key("llama.embedding_length", 0), "invalid_model_file"],
  ["no heads", key("llama.attention.head_count", 0), "invalid_model_file"],
  ["four billion blocks", key("llama.block_count", 2 ** 32 - 1), "invalid_model_file"],
  [
    "no vocabulary",
    { base: "llama", changes: [{ key: "tokenizer.ggml.model", value: string("no_vocab") }] },
    "invalid_model_file",
  ],
  [
    "fewer scores than tokens",
    { base: "llama", changes: [{ list: "tokenizer.ggml.scores", length: 3 }] },
    "invalid_model_file",
  ],
  [
    "a token twice",
    { base: "llama", changes: [{ list: "tokenizer.ggml.tokens", length: 700 }] },
    "invalid_model_file",
  ],
  [
    "a tensor of 2^60 weights",
    { base: "llama", changes: [{ field: "dimension 0 of tensor 0", value: String(2n ** 60n) }] },
    "invalid_model_file",
  ],
  [
    "an alignment of 2^63",
    { base: "llama", changes: [{ key: "general.alignment", value: u64(2n ** 63n) }] },
    "invalid_model_file",
  ],
  [
    "3.4e38 heads with keys and values",
    { base: "llama", changes: [{ key: "llama.attention.head_count_kv", value: f32(3.4e38) }] },
    "invalid_model_file",
  ],
  [
    "an encoder's vocabulary without the token that ends a text",
    { base: "bert", changes: [{ key: "tokenizer.ggml.seperator_token_id", value: null }] },
    "invalid_model_file",
  ],
];
