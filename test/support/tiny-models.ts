import {
  array,
  bool,
  f32,
  type GgufFile,
  type GgufTensor,
  type GgufValue,
  i32,
  string,
  type TensorType,
  u16,
  u32,
} from "./gguf-writer.ts";

/** Small models with random weights. Their text means nothing; everything else about them is real. */

export interface LlamaOptions {
  readonly name?: string;
  readonly embedding?: number;
  readonly feedForward?: number;
  readonly blocks?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly context?: number;
  /** Type of the weight matrices; their rows must be a multiple of 32 when quantized. */
  readonly weights?: TensorType;
  readonly chatTemplate?: string;
  /** Further words of the vocabulary, such as "<think>"; each becomes one token. */
  readonly words?: readonly string[];
  /** Further texts that are one token each, of which no prompt is made. */
  readonly texts?: readonly string[];
  /** Further or replacing metadata. */
  readonly metadata?: Readonly<Record<string, GgufValue>>;
  readonly architecture?: string;
}

/** The least chat template: ChatML without tools or reasoning. */
export const CHATML_TEMPLATE =
  "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor -%}" +
  "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif -%}";

/** Tokens of {@link CHATML_TEMPLATE}. */
export const CHATML_WORDS = ["<|im_start|>", "<|im_end|>"];

/** Id of a token in the vocabulary of a model. */
export function tokenId({ metadata }: GgufFile, token: string): number {
  const tokens = metadata["tokenizer.ggml.tokens"];
  return tokens?.type === "array" ? tokens.value.indexOf(token) : -1;
}

const TOKEN_NORMAL = 1;
const TOKEN_UNKNOWN = 2;
const TOKEN_CONTROL = 3;
const TOKEN_BYTE = 6;

/** Deviation of random weights: about what trained models of this size have. */
const WEIGHT_DEVIATION = 0.05;

/** A llama model with a SentencePiece vocabulary of all bytes, the letters and a few words. */
export function tinyLlama(options: LlamaOptions = {}): GgufFile {
  const { embedding = 64, feedForward = 128, blocks = 2, heads = 4, kvHeads = 2, context = 512 } = options;
  const { architecture = "llama", weights = "F32" } = options;
  const vocabulary = spmVocabulary(options.words ?? [], options.texts ?? []);
  const head = embedding / heads;
  const matrix = (name: string, shape: number[]): GgufTensor => weight(name, shape, weights);
  const tensors = [
    matrix("token_embd.weight", [embedding, vocabulary.tokens.length]),
    ones("output_norm.weight", embedding),
  ];
  for (let block = 0; block < blocks; block += 1) {
    const at = `blk.${block}.`;
    tensors.push(
      ones(`${at}attn_norm.weight`, embedding),
      matrix(`${at}attn_q.weight`, [embedding, embedding]),
      matrix(`${at}attn_k.weight`, [embedding, head * kvHeads]),
      matrix(`${at}attn_v.weight`, [embedding, head * kvHeads]),
      matrix(`${at}attn_output.weight`, [embedding, embedding]),
      ones(`${at}ffn_norm.weight`, embedding),
      matrix(`${at}ffn_gate.weight`, [embedding, feedForward]),
      matrix(`${at}ffn_up.weight`, [embedding, feedForward]),
      matrix(`${at}ffn_down.weight`, [feedForward, embedding]),
    );
  }
  const metadata: Record<string, GgufValue> = {
    "general.architecture": string(architecture),
    "general.name": string(options.name ?? "tiny llama"),
    [`${architecture}.context_length`]: u32(context),
    [`${architecture}.embedding_length`]: u32(embedding),
    [`${architecture}.block_count`]: u32(blocks),
    [`${architecture}.feed_forward_length`]: u32(feedForward),
    [`${architecture}.attention.head_count`]: u32(heads),
    [`${architecture}.attention.head_count_kv`]: u32(kvHeads),
    [`${architecture}.rope.dimension_count`]: u32(head),
    [`${architecture}.attention.layer_norm_rms_epsilon`]: f32(1e-5),
    "tokenizer.ggml.model": string("llama"),
    "tokenizer.ggml.tokens": array("string", vocabulary.tokens),
    "tokenizer.ggml.scores": array("f32", vocabulary.scores),
    "tokenizer.ggml.token_type": array("i32", vocabulary.types),
    "tokenizer.ggml.unknown_token_id": u32(0),
    "tokenizer.ggml.bos_token_id": u32(1),
    "tokenizer.ggml.eos_token_id": u32(2),
    "tokenizer.ggml.add_space_prefix": bool(false),
    ...(options.chatTemplate !== undefined && { "tokenizer.chat_template": string(options.chatTemplate) }),
    ...options.metadata,
  };
  return { metadata, tensors };
}

interface Vocabulary {
  readonly tokens: string[];
  readonly scores: number[];
  readonly types: number[];
}

const COMMON_WORDS = [
  "the",
  "and",
  "a",
  "to",
  "of",
  "was",
  "once",
  "upon",
  "time",
  "there",
  "he",
  "she",
  "it",
];

function spmVocabulary(words: readonly string[], texts: readonly string[]): Vocabulary {
  const vocabulary: Vocabulary = { tokens: [], scores: [], types: [] };
  const add = (token: string, type: number, score = 0): void => {
    vocabulary.tokens.push(token);
    vocabulary.types.push(type);
    vocabulary.scores.push(score);
  };
  add("<unk>", TOKEN_UNKNOWN);
  add("<s>", TOKEN_CONTROL);
  add("</s>", TOKEN_CONTROL);
  for (let byte = 0; byte < 256; byte += 1) {
    add(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, TOKEN_BYTE);
  }
  const letters = Array.from({ length: 0x7f - 0x21 }, (_, index) => String.fromCharCode(0x21 + index));
  const pieces = ["▁", ...letters, ...COMMON_WORDS, ...COMMON_WORDS.map((word) => `▁${word}`)];
  for (const token of new Set(pieces)) add(token, TOKEN_NORMAL, -vocabulary.tokens.length);
  for (const word of words) add(word, TOKEN_CONTROL);
  for (const text of texts) add(text, TOKEN_NORMAL, -vocabulary.tokens.length);
  return vocabulary;
}

interface BertOptions {
  readonly embedding?: number;
  readonly blocks?: number;
  readonly context?: number;
  readonly rerank?: boolean;
}

const BERT_WORDS = [
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "▁hello",
  "▁world",
  "▁cat",
  "▁dog",
  "▁the",
  "▁a",
  "s",
  "ing",
];

/** A bert model with a WordPiece vocabulary of a few words; with `rerank` it scores pairs of texts. */
export function tinyBert({
  embedding = 32,
  blocks = 2,
  context = 128,
  rerank = false,
}: BertOptions = {}): GgufFile {
  const feedForward = embedding * 2;
  const normalized = (name: string): GgufTensor[] => [
    ones(`${name}.weight`, embedding),
    { name: `${name}.bias`, shape: [embedding], type: "F32", data: { fill: 0 } },
  ];
  const tensors: GgufTensor[] = [
    weight("token_embd.weight", [embedding, BERT_WORDS.length], "F32", 1),
    weight("position_embd.weight", [embedding, context], "F32"),
    weight("token_types.weight", [embedding, 2], "F32"),
    ...normalized("token_embd_norm"),
  ];
  for (let block = 0; block < blocks; block += 1) {
    const at = `blk.${block}.`;
    for (const part of ["q", "k", "v", "output"]) {
      tensors.push(weight(`${at}attn_${part}.weight`, [embedding, embedding], "F32"));
    }
    tensors.push(
      ...normalized(`${at}attn_output_norm`),
      weight(`${at}ffn_up.weight`, [embedding, feedForward], "F32"),
      weight(`${at}ffn_down.weight`, [feedForward, embedding], "F32"),
      ...normalized(`${at}layer_output_norm`),
    );
  }
  if (rerank) {
    tensors.push(
      weight("cls.weight", [embedding, embedding], "F32"),
      weight("cls.output.weight", [embedding, 1], "F32", 1),
    );
  }
  return {
    tensors,
    metadata: {
      "general.architecture": string("bert"),
      "bert.context_length": u32(context),
      "bert.embedding_length": u32(embedding),
      "bert.block_count": u32(blocks),
      "bert.feed_forward_length": u32(feedForward),
      "bert.attention.head_count": u32(2),
      "bert.attention.layer_norm_epsilon": f32(1e-12),
      "bert.attention.causal": bool(false),
      "bert.pooling_type": u32(1),
      "tokenizer.ggml.model": string("bert"),
      "tokenizer.ggml.token_type_count": u32(2),
      "tokenizer.ggml.tokens": array("string", BERT_WORDS),
      "tokenizer.ggml.token_type": array(
        "i32",
        BERT_WORDS.map((_, index) => (index < 4 ? TOKEN_CONTROL : TOKEN_NORMAL)),
      ),
      "tokenizer.ggml.padding_token_id": u32(0),
      "tokenizer.ggml.unknown_token_id": u32(1),
      "tokenizer.ggml.bos_token_id": u32(2),
      "tokenizer.ggml.seperator_token_id": u32(3),
      "tokenizer.ggml.eos_token_id": u32(3),
    },
  };
}

/** A LoRA adapter for the query matrices of a {@link tinyLlama} of the same shape. */
export function tinyLora({ embedding = 64, blocks = 2, deviation = 1 } = {}): GgufFile {
  const rank = 4;
  const tensors: GgufTensor[] = [];
  for (let block = 0; block < blocks; block += 1) {
    tensors.push(
      weight(`blk.${block}.attn_q.weight.lora_a`, [embedding, rank], "F32", deviation),
      weight(`blk.${block}.attn_q.weight.lora_b`, [rank, embedding], "F32", deviation),
    );
  }
  return {
    tensors,
    metadata: {
      "general.type": string("adapter"),
      "general.architecture": string("llama"),
      "adapter.type": string("lora"),
      "adapter.lora.alpha": f32(rank),
    },
  };
}

interface ProjectorOptions {
  /** Embedding length of the text model. */
  readonly textEmbedding?: number;
  readonly imageSize?: number;
  readonly patchSize?: number;
}

/** A vision projector in the janus_pro form: (imageSize / patchSize)² tokens for an image. */
export function tinyProjector({
  textEmbedding = 64,
  imageSize = 32,
  patchSize = 8,
}: ProjectorOptions = {}): GgufFile {
  const width = 32;
  const feedForward = 48;
  const tensors: GgufTensor[] = [
    weight("v.patch_embd.weight", [patchSize, patchSize, 3, width], "F32"),
    weight("v.position_embd.weight", [width, (imageSize / patchSize) ** 2], "F32"),
    weight("mm.0.weight", [width, textEmbedding], "F32"),
    weight("mm.0.bias", [textEmbedding], "F32"),
    weight("mm.1.weight", [textEmbedding, textEmbedding], "F32"),
    weight("mm.1.bias", [textEmbedding], "F32"),
  ];
  for (const part of ["q", "k", "v", "out"])
    tensors.push(weight(`v.blk.0.attn_${part}.weight`, [width, width], "F32"));
  tensors.push(weight("v.blk.0.ffn_up.weight", [width, feedForward], "F32"));
  tensors.push(weight("v.blk.0.ffn_down.weight", [feedForward, width], "F32"));
  return {
    tensors,
    metadata: {
      "general.architecture": string("clip"),
      "clip.has_vision_encoder": bool(true),
      "clip.projector_type": string("janus_pro"),
      "clip.vision.image_size": u32(imageSize),
      "clip.vision.patch_size": u32(patchSize),
      "clip.vision.embedding_length": u32(width),
      "clip.vision.feed_forward_length": u32(feedForward),
      "clip.vision.projection_dim": u32(textEmbedding),
      "clip.vision.block_count": u32(1),
      "clip.vision.attention.head_count": u32(2),
      "clip.vision.attention.layer_norm_epsilon": f32(1e-6),
      "clip.vision.image_mean": array("f32", [0.5, 0.5, 0.5]),
      "clip.vision.image_std": array("f32", [0.5, 0.5, 0.5]),
    },
  };
}

/** Splits a model into shards with the keys that llama.cpp's gguf-split writes. */
export function shardsOf({ metadata, tensors }: GgufFile, count: number): GgufFile[] {
  const each = Math.ceil(tensors.length / count);
  return Array.from({ length: count }, (_, index) => ({
    metadata: {
      ...(index === 0 ? metadata : {}),
      "split.no": u16(index),
      "split.count": u16(count),
      "split.tensors.count": i32(tensors.length),
    },
    tensors: tensors.slice(index * each, (index + 1) * each),
  }));
}

function weight(name: string, shape: number[], type: TensorType, deviation = WEIGHT_DEVIATION): GgufTensor {
  return { name, shape, type, data: { random: deviation } };
}

function ones(name: string, size: number): GgufTensor {
  return { name, shape: [size], type: "F32", data: { fill: 1 } };
}
