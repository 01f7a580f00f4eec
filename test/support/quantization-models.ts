import type { GgufFile, GgufTensor } from "./gguf-writer.ts";
import { f32, u32 } from "./gguf-writer.ts";
import { type LlamaOptions, tinyLlama } from "./tiny-models.ts";

/**
 * Small models that together reach every rule by which tensors get their types, by name. The first one is whole; of the
 * matrices of the others there is hardly more than their shape.
 */
export const QUANTIZATION_MODELS: Readonly<Record<string, () => GgufFile>> = {
  /** Heads share keys in fours, and the embedding serves as output. */
  shared: () => tinyLlama({ embedding: 256, feedForward: 256, blocks: 8, heads: 8, kvHeads: 2 }),
  /** F16, with an output of its own. */
  untied: () => withOutput(model({ blocks: 17, heads: 4, kvHeads: 4, weights: "F16" })),
  /** Rows that blocks of 256 do not divide. */
  narrow: () => thin(tinyLlama({ embedding: 96, feedForward: 160, blocks: 2, heads: 4, kvHeads: 1 })),
  /** Quantized before. */
  quantized: () => model({ blocks: 2, heads: 4, kvHeads: 2, weights: "Q8_0" }),
  eight: () => withExperts(model({ blocks: 8, heads: 8, kvHeads: 2 }), 8),
  four: () => withExperts(model({ blocks: 3, heads: 8, kvHeads: 2 }), 4),
  falcon: () => falcon(model({ architecture: "falcon", blocks: 16, heads: 8, kvHeads: 1 })),
  /** As many blocks as the models that llama.cpp calls 70B. */
  deep: () => model({ blocks: 80, heads: 8, kvHeads: 1 }),
};

function model(options: LlamaOptions): GgufFile {
  return thin(tinyLlama({ embedding: 256, feedForward: 256, ...options }));
}

/** Leaves the first rows of each matrix. */
function thin(file: GgufFile): GgufFile {
  const tensors = file.tensors.map((tensor): GgufTensor => {
    const [row = 1, rows = 1] = tensor.shape;
    return rows > 1 ? { ...tensor, shape: [row, 4] } : tensor;
  });
  return { ...file, tensors };
}

function withOutput(file: GgufFile): GgufFile {
  const [embedding] = file.tensors;
  return { ...file, tensors: [...file.tensors, { ...embedding!, name: "output.weight" }] };
}

/** Experts in stacks, and what chooses them. */
function withExperts({ metadata, tensors }: GgufFile, experts: number): GgufFile {
  const stacked = tensors.map((tensor): GgufTensor =>
    /ffn_(?:gate|up|down)/.test(tensor.name)
      ? {
          ...tensor,
          name: tensor.name.replace(".weight", "_exps.weight"),
          shape: [...tensor.shape, experts],
        }
      : tensor,
  );
  const router: GgufTensor = {
    name: "blk.0.ffn_gate_inp.weight",
    shape: [256, experts],
    type: "F32",
    data: { random: 0.1 },
  };
  const counts = { "llama.expert_count": u32(experts), "llama.expert_used_count": u32(2) };
  return { metadata: { ...metadata, ...counts }, tensors: [...stacked, router] };
}

function falcon({ metadata, tensors }: GgufFile): GgufFile {
  return {
    metadata: { ...metadata, "falcon.attention.layer_norm_epsilon": f32(1e-5) },
    tensors: tensors.map((tensor) => ({ ...tensor, name: tensor.name.replace("attn_q.", "attn_qkv.") })),
  };
}
