import { existsSync, mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import {
  array,
  bool,
  f32,
  type GgufFile,
  type GgufTensor,
  string,
  type TensorType,
  tensorBytes,
  u32,
  writeGguf,
} from "../../../test/support/gguf-writer.ts";

export interface Shape {
  readonly embedding: number;
  readonly feedForward: number;
  readonly blocks: number;
  readonly heads: number;
  readonly headWidth: number;
  readonly kvHeads: number;
  readonly vocabulary: number;
  /** A mixture: matrices of each feed-forward part, and how many of them a token meets. */
  readonly experts?: { readonly count: number; readonly used: number };
}

/**
 * 1B and 3B are the shapes of Llama 3.2, 8B is that of Llama 3.1, 9B, whose files have over 5 GB, that of Yi 1.5; no
 * common model of half a billion has rows that the K types can divide. A slice is two blocks of it with a tenth of their
 * weights as output: behind a long context its rates compare as those of the whole, and the context is read in an eighth of
 * the time. Wide has the vocabulary of a large model and hardly anything else, to see what is done for each token of it. A mixture
 * of experts, moe, has layers as those of Qwen3 30B A3B, but half as many experts. Tiny is for trying a
 * benchmark out.
 */
export const SHAPES = {
  tiny: {
    embedding: 256,
    feedForward: 512,
    blocks: 4,
    heads: 4,
    headWidth: 64,
    kvHeads: 2,
    vocabulary: 1000,
  },
  wide: {
    embedding: 256,
    feedForward: 512,
    blocks: 1,
    heads: 4,
    headWidth: 64,
    kvHeads: 2,
    vocabulary: 128_256,
  },
  slice: {
    embedding: 1536,
    feedForward: 4608,
    blocks: 2,
    heads: 24,
    headWidth: 64,
    kvHeads: 8,
    vocabulary: 4000,
  },
  "0.1B": {
    embedding: 768,
    feedForward: 2048,
    blocks: 12,
    heads: 12,
    headWidth: 64,
    kvHeads: 4,
    vocabulary: 32_000,
  },
  "0.5B": {
    embedding: 1536,
    feedForward: 4608,
    blocks: 16,
    heads: 24,
    headWidth: 64,
    kvHeads: 8,
    vocabulary: 32_000,
  },
  "1B": {
    embedding: 2048,
    feedForward: 8192,
    blocks: 16,
    heads: 32,
    headWidth: 64,
    kvHeads: 8,
    vocabulary: 128_256,
  },
  "3B": {
    embedding: 3072,
    feedForward: 8192,
    blocks: 28,
    heads: 24,
    headWidth: 128,
    kvHeads: 8,
    vocabulary: 128_256,
  },
  "8B": {
    embedding: 4096,
    feedForward: 14_336,
    blocks: 32,
    heads: 32,
    headWidth: 128,
    kvHeads: 8,
    vocabulary: 128_256,
  },
  "9B": {
    embedding: 4096,
    feedForward: 11_008,
    blocks: 48,
    heads: 32,
    headWidth: 128,
    kvHeads: 4,
    vocabulary: 64_000,
  },
  moe: {
    embedding: 2048,
    feedForward: 768,
    blocks: 4,
    heads: 32,
    headWidth: 128,
    kvHeads: 4,
    vocabulary: 32_000,
    experts: { count: 64, used: 8 },
  },
} as const satisfies Record<string, Shape>;
export type ShapeName = keyof typeof SHAPES;

/**
 * The mixtures that llama.cpp's llama-quantize makes, IQ4_XS with an importance matrix, and MXFP4 beside Q8_0; the embedding is
 * the output matrix as well in all shapes.
 */
const MIXTURES = {
  Q4_0: { most: "Q4_0", output: "Q6_K", sensitive: "Q4_0" },
  Q8_0: { most: "Q8_0", output: "Q8_0", sensitive: "Q8_0" },
  Q4_K_M: { most: "Q4_K", output: "Q6_K", sensitive: "Q6_K" },
  Q6_K: { most: "Q6_K", output: "Q6_K", sensitive: "Q6_K" },
  Q5_K_M: { most: "Q5_K", output: "Q6_K", sensitive: "Q6_K" },
  IQ4_XS: { most: "IQ4_XS", output: "Q6_K", sensitive: "IQ4_XS" },
  MXFP4: { most: "MXFP4", output: "Q8_0", sensitive: "MXFP4" },
} as const satisfies Record<string, Record<string, TensorType>>;
export type Quantization = keyof typeof MIXTURES;
export const QUANTIZATIONS = Object.keys(MIXTURES).filter((name): name is Quantization => name in MIXTURES);

const CONTEXT = 65_536;
const DEVIATION = 0.02;
const SPECIAL = ["<unk>", "<s>", "</s>"];
const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz");
const ASCII = Array.from({ length: 127 }, (_, at) => String.fromCharCode(at + 1));
const BEGIN_OF_SEQUENCE = SPECIAL.indexOf("<s>");
const TOKEN_TYPES = { normal: 1, unknown: 2, control: 3 };

export function benchModelFile(
  folder: string,
  shape: ShapeName,
  quantization: Quantization,
  blocks: number = SHAPES[shape].blocks,
): string {
  const other = blocks === SHAPES[shape].blocks ? "" : `-${blocks}-blocks`;
  return path.join(folder, `random-${shape}${other}-${quantization}-${CONTEXT}.gguf`);
}

/**
 * Writes the model into the folder unless it is there, and returns its path.
 * @param blocks in place of those of the shape
 */
export function ensureBenchModel(
  folder: string,
  shape: ShapeName,
  quantization: Quantization,
  blocks: number = SHAPES[shape].blocks,
): string {
  const file = benchModelFile(folder, shape, quantization, blocks);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  const unfinished = `${file}.${process.pid}.tmp`;
  writeGguf(unfinished, benchModel({ ...SHAPES[shape], blocks }, quantization));
  renameSync(unfinished, file);
  return file;
}

/** Bytes of the model's weights, which are almost all of its file. */
export function benchModelBytes(shape: ShapeName, quantization: Quantization): number {
  const { tensors } = benchModel(SHAPES[shape], quantization);
  return tensors.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
}

/**
 * The same prompt as text and as tokens, whose first is the begin of the sequence.
 * @param salt another number makes other tokens after the first `depth`
 */
export function benchPrompt(
  tokens: number,
  salt = 0,
  depth = 0,
): { readonly text: string; readonly ids: number[] } {
  const letters = Array.from(
    { length: tokens - 1 },
    (_, at) => (at * (at + 7) + (at + 1 < depth ? 0 : salt) * 11 + at) % LETTERS.length,
  );
  return {
    text: letters.map((letter) => LETTERS[letter]).join(""),
    ids: [BEGIN_OF_SEQUENCE, ...letters.map((letter) => SPECIAL.length + letter)],
  };
}

function matrix(name: string, shape: readonly number[], type: TensorType): GgufTensor {
  return { name, shape, type, data: { random: DEVIATION } };
}

/** The model as it is written to a file. */
export function benchModel(shape: Shape, quantization: Quantization): GgufFile {
  const { embedding, feedForward, blocks, heads, headWidth, kvHeads, vocabulary, experts } = shape;
  const { most, output, sensitive } = MIXTURES[quantization];
  const norm = (name: string): GgufTensor => ({ name, shape: [embedding], type: "F32", data: { fill: 1 } });
  const feed = (name: string, sizes: readonly number[], type: TensorType): GgufTensor =>
    experts
      ? matrix(`${name}_exps.weight`, [...sizes, experts.count], type)
      : matrix(`${name}.weight`, sizes, type);
  const tensors = [matrix("token_embd.weight", [embedding, vocabulary], output), norm("output_norm.weight")];
  for (let block = 0; block < blocks; block++) {
    const at = `blk.${block}.`;
    const important = takesMoreBits(block, blocks) ? sensitive : most;
    tensors.push(
      norm(`${at}attn_norm.weight`),
      matrix(`${at}attn_q.weight`, [embedding, heads * headWidth], most),
      matrix(`${at}attn_k.weight`, [embedding, kvHeads * headWidth], most),
      matrix(`${at}attn_v.weight`, [embedding, kvHeads * headWidth], important),
      matrix(`${at}attn_output.weight`, [heads * headWidth, embedding], most),
      norm(`${at}ffn_norm.weight`),
      feed(`${at}ffn_gate`, [embedding, feedForward], most),
      feed(`${at}ffn_up`, [embedding, feedForward], most),
      feed(`${at}ffn_down`, [feedForward, embedding], important),
    );
    if (experts) tensors.push(matrix(`${at}ffn_gate_inp.weight`, [embedding, experts.count], "F32"));
  }
  return { tensors, metadata: { ...describeShape(shape), ...describeVocabulary(vocabulary) } };
}

/** Which blocks llama.cpp gives more bits in the mixtures called M: the first and last eighth, and each third. */
function takesMoreBits(block: number, blocks: number): boolean {
  const eighth = Math.floor(blocks / 8);
  return block < eighth || block >= Math.floor((7 * blocks) / 8) || (block - eighth) % 3 === 2;
}

function describeShape({
  embedding,
  feedForward,
  blocks,
  heads,
  headWidth,
  kvHeads,
  experts,
}: Shape): GgufFile["metadata"] {
  return {
    ...(experts && {
      "llama.expert_count": u32(experts.count),
      "llama.expert_used_count": u32(experts.used),
    }),
    "general.architecture": string("llama"),
    "general.name": string("random weights"),
    "llama.context_length": u32(CONTEXT),
    "llama.embedding_length": u32(embedding),
    "llama.block_count": u32(blocks),
    "llama.feed_forward_length": u32(feedForward),
    "llama.attention.head_count": u32(heads),
    "llama.attention.head_count_kv": u32(kvHeads),
    "llama.rope.dimension_count": u32(headWidth),
    "llama.attention.key_length": u32(headWidth),
    "llama.attention.value_length": u32(headWidth),
    "llama.attention.layer_norm_rms_epsilon": f32(1e-5),
  };
}

/**
 * Characters and words, but no bytes: what a random model generates is whole characters and is sent at once. All of
 * ASCII is there, because native llama.cpp ends when a text that it tries while it loads cannot be spelled.
 */
function describeVocabulary(size: number): GgufFile["metadata"] {
  const tokens = [...new Set([...SPECIAL, ...LETTERS, "▁", ...ASCII])];
  while (tokens.length < size) tokens.push(`▁word${tokens.length}`);
  const types = tokens.map((_, id) =>
    id === 0 ? TOKEN_TYPES.unknown : id < SPECIAL.length ? TOKEN_TYPES.control : TOKEN_TYPES.normal,
  );
  return {
    "tokenizer.ggml.model": string("llama"),
    "tokenizer.ggml.tokens": array("string", tokens),
    "tokenizer.ggml.scores": array(
      "f32",
      tokens.map((_, id) => -id),
    ),
    "tokenizer.ggml.token_type": array("i32", types),
    "tokenizer.ggml.unknown_token_id": u32(0),
    "tokenizer.ggml.bos_token_id": u32(BEGIN_OF_SEQUENCE),
    "tokenizer.ggml.eos_token_id": u32(SPECIAL.indexOf("</s>")),
    "tokenizer.ggml.add_space_prefix": bool(false),
  };
}
