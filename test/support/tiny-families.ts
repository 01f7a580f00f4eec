import { f32, type GgufFile, type GgufTensor, type GgufValue, u32 } from "./gguf-writer.ts";
import { tinyLlama } from "./tiny-models.ts";

/** Small models with random weights of families whose graphs are not a llama's. */

const EMBEDDING = 64;
const HEADS = 4;
const KV_HEADS = 2;
const HEAD = EMBEDDING / HEADS;
const BLOCKS = 2;

/** Biases of queries, keys and values, and rotation of halves. */
export function tinyQwen2(): GgufFile {
  return family("qwen2", [
    random("attn_q.bias", EMBEDDING),
    random("attn_k.bias", HEAD * KV_HEADS),
    random("attn_v.bias", HEAD * KV_HEADS),
  ]);
}

/** Normalized queries and keys. */
export function tinyQwen3(): GgufFile {
  return family("qwen3", [random("attn_q_norm.weight", HEAD), random("attn_k_norm.weight", HEAD)]);
}

/** Norms behind attention and feed-forward parts, GEGLU, scaled embeddings, windows of attention. */
export function tinyGemma3(): GgufFile {
  const norms = [
    random("attn_q_norm.weight", HEAD),
    random("attn_k_norm.weight", HEAD),
    random("post_attention_norm.weight", EMBEDDING),
    random("post_ffw_norm.weight", EMBEDDING),
  ];
  return family("gemma3", norms, {
    "gemma3.attention.sliding_window": u32(8),
    "gemma3.attention.key_length": u32(HEAD),
    "gemma3.attention.value_length": u32(HEAD),
    "gemma3.rope.freq_base": f32(10_000),
  });
}

/** Scores of attention are bounded by a tangent, which our kernels leave to llama.cpp. */
export function tinyGemma2(): GgufFile {
  const norms = [random("post_attention_norm.weight", EMBEDDING), random("post_ffw_norm.weight", EMBEDDING)];
  return family("gemma2", norms, {
    "gemma2.attention.sliding_window": u32(8),
    "gemma2.attention.key_length": u32(HEAD),
    "gemma2.attention.value_length": u32(HEAD),
    "gemma2.attn_logit_softcapping": f32(50),
    "gemma2.final_logit_softcapping": f32(30),
  });
}

function random(name: string, size: number): GgufTensor {
  return { name, shape: [size], type: "F32", data: { random: 1 } };
}

/** A llama under another name, with further tensors in each block. */
function family(
  architecture: string,
  ofBlock: readonly GgufTensor[],
  more: Readonly<Record<string, GgufValue>> = {},
): GgufFile {
  const sizes = { embedding: EMBEDDING, heads: HEADS, kvHeads: KV_HEADS, blocks: BLOCKS };
  const { metadata, tensors } = tinyLlama({ architecture, metadata: more, ...sizes });
  const added = Array.from({ length: BLOCKS }, (_, block) =>
    ofBlock.map((tensor) => ({ ...tensor, name: `blk.${block}.${tensor.name}` })),
  );
  return { metadata, tensors: [...tensors, ...added.flat()] };
}
