import { benchModel, type Quantization, SHAPES } from "../../scripts/bench/cpu/bench-models.ts";
import { type GgufFile, type GgufTensor, string } from "./gguf-writer.ts";

/**
 * A small model of benchmarks as one of the Qwens: 2 has biases of queries, keys and values, 3 norms of the heads of queries and keys.
 * All that it generates is text, so that each token has log-probabilities.
 */
export function benchQwen(version: 2 | 3, quantization: Quantization): GgufFile {
  const architecture = `qwen${version}`;
  const { blocks, heads, kvHeads, headWidth } = SHAPES.tiny;
  const { metadata, tensors } = benchModel(SHAPES.tiny, quantization);
  const ofBlock = (at: string): GgufTensor[] =>
    version === 2
      ? [
          random(`${at}attn_q.bias`, heads * headWidth),
          random(`${at}attn_k.bias`, kvHeads * headWidth),
          random(`${at}attn_v.bias`, kvHeads * headWidth),
        ]
      : [random(`${at}attn_q_norm.weight`, headWidth), random(`${at}attn_k_norm.weight`, headWidth)];
  const renamed = Object.entries(metadata).map(([key, value]) => [
    key.replace(/^llama\./, `${architecture}.`),
    value,
  ]);
  return {
    metadata: { ...Object.fromEntries(renamed), "general.architecture": string(architecture) },
    tensors: [...tensors, ...Array.from({ length: blocks }, (_, block) => ofBlock(`blk.${block}.`)).flat()],
  };
}

function random(name: string, size: number): GgufTensor {
  return { name, shape: [size], type: "F32", data: { random: 1 } };
}
