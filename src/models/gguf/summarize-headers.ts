import type { GgufSummary } from "../model.ts";
import { claimed, InvalidGguf } from "./byte-reader.ts";
import { FILE_TYPE_NAMES } from "./ggml-types.ts";
import { type Metadata, type MetadataValue, STRING } from "./read-metadata.ts";
import type { GgufHeader } from "./read-tensors.ts";
import { toolCallTokens, infillTokens } from "./vocabulary-markers.ts";

/** Encoder architectures, which embed or rank and never generate. */
const ENCODERS: ReadonlySet<string> = new Set([
  "bert",
  "eurobert",
  "gemma-embedding",
  "jina-bert-v2",
  "jina-bert-v3",
  "llama-embed",
  "modern-bert",
  "neo-bert",
  "nomic-bert",
  "nomic-bert-moe",
  "t5encoder",
]);
/** enum llama_pooling_type: 0 is none, 1 to 3 are mean, first and last token, 4 is a rank head. */
const POOLING_NONE = 0;
const POOLING_RANK = 4;
/** Bytes of an f16 number. */
const BYTES_PER_ELEMENT = 2;
/** Maximum layers, because the number in the file is not trusted. */
const MAX_LAYERS = 4096;

/**
 * Summarizes the headers of a model's files, in order. The first shard has the metadata; the others add weights. Throws
 * InvalidGguf if they are no model.
 */
export function summarizeHeaders(headers: readonly [GgufHeader, ...GgufHeader[]]): GgufSummary {
  const [first] = headers;
  const text = (key: string): string | undefined => {
    const value = first.metadata.get(key);
    return typeof value === "string" ? value : undefined;
  };
  const architecture = text("general.architecture");
  if (!architecture) throw new InvalidGguf("it does not say its architecture");
  const count = (key: string): number => {
    const value = first.metadata.get(`${architecture}.${key}`);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
  };
  checkShards(headers);
  const parameters = headers.reduce((sum, header) => sum + header.tensors.parameters, 0);
  if (parameters === 0) throw new InvalidGguf("it holds no weights");
  const auxiliary = auxiliaryKind(first, architecture);
  if (!auxiliary) {
    checkNotOllamaFormat(architecture, headers);
    const tensors = headers.reduce((sum, header) => sum + header.tensors.count, 0);
    checkNumbers(first.metadata, architecture, tensors);
    const template = first.metadata.get("tokenizer.chat_template");
    if (typeof template === "object") {
      throw new InvalidGguf(`its chat template has ${template.length} bytes`);
    }
  }
  const tokens = first.metadata.get("tokenizer.ggml.tokens");
  return {
    architecture,
    name: text("general.name"),
    license: text("general.license"),
    parameters,
    vocabSize: typeof tokens === "object" ? tokens.length : count("vocab_size"),
    contextLength: count("context_length"),
    embeddingLength: count("embedding_length"),
    ...attention(first.metadata, architecture),
    blockCount: count("block_count"),
    quantization: quantization(headers),
    fileSize: headers.reduce((sum, header) => sum + header.fileSize, 0),
    chatTemplate: text("tokenizer.chat_template"),
    toolCallTokens: toolCallTokens(first.metadata),
    infill: infillTokens(first.metadata),
    weightBytes: weightBytes(headers),
    purpose: modelPurpose(headers, architecture),
    auxiliary,
    media: encoderMedia(first.metadata),
  };
}

function weightBytes(headers: readonly GgufHeader[]): GgufSummary["weightBytes"] {
  const all = headers.map(({ tensors }) => tensors.weightBytes);
  const sum = (part: "blocks" | "embedding" | "output"): number =>
    all.reduce((total, each) => total + each[part], 0);
  return {
    blocks: sum("blocks"),
    largestInBlocks: Math.max(...all.map(({ largestInBlocks }) => largestInBlocks)),
    embedding: sum("embedding"),
    output: sum("output"),
  };
}

function quantization(headers: readonly [GgufHeader, ...GgufHeader[]]): string {
  const fileType = numberIn(headers[0].metadata, "general.file_type");
  return (
    FILE_TYPE_NAMES.get(fileType ?? -1) ??
    headers.find((header) => header.tensors.mainType)?.tensors.mainType ??
    "unknown"
  );
}

/**
 * Determines the purpose of a model. A reranker without its rank head, which may be in any shard, runs, but its scores
 * are meaningless, so it counts as an embedding model.
 */
function modelPurpose(
  headers: readonly [GgufHeader, ...GgufHeader[]],
  architecture: string,
): GgufSummary["purpose"] {
  const pooling = numberIn(headers[0].metadata, `${architecture}.pooling_type`) ?? POOLING_NONE;
  const isEncoder = ENCODERS.has(architecture);
  const hasRankHead = headers.some(({ tensors }) => tensors.hasRankHead);
  if (hasRankHead && (isEncoder || pooling === POOLING_RANK)) return "rerank";
  return isEncoder || pooling !== POOLING_NONE ? "embed" : "generate";
}

/** Returns the media of a projector. The oldest ones lack the key of their image encoder. */
function encoderMedia(metadata: Metadata): GgufSummary["media"] {
  const audio = metadata.get("clip.has_audio_encoder") === true;
  return { image: (metadata.get("clip.has_vision_encoder") ?? !audio) === true, audio };
}

/** Returns the kind of a file that is loaded together with a model. */
function auxiliaryKind(header: GgufHeader, architecture: string): GgufSummary["auxiliary"] {
  const kind = header.metadata.get("general.type");
  if (kind === "adapter" || header.metadata.has("adapter.type")) return "adapter";
  return kind === "mmproj" || architecture === "clip" ? "projector" : undefined;
}

function numberIn(metadata: Metadata, key: string): number | undefined {
  const value = metadata.get(key);
  return typeof value === "number" ? value : undefined;
}

/**
 * Returns the number of heads of the layer with the most, the elements of a key and of a value in one head, and the
 * bytes of KV cache per token of context at f16, for all layers. Layers with a sliding window count like the others, so
 * this is an upper bound; 0 for encoders and for architectures without attention.
 */
function attention(
  metadata: Metadata,
  architecture: string,
): Pick<GgufSummary, "headCount" | "headWidths" | "kvBytesPerToken"> {
  const number = (key: string): number | undefined => numberIn(metadata, `${architecture}.${key}`);
  const layers = Math.min(number("block_count") ?? 0, MAX_LAYERS);
  const perLayer = (key: string): readonly number[] | undefined => {
    const value = metadata.get(`${architecture}.attention.${key}`);
    if (typeof value === "number") return Array.from({ length: layers }, () => value);
    return typeof value === "object" ? value.numbers : undefined;
  };
  const heads = perLayer("head_count");
  const headCount = Math.max(0, number("attention.head_count") ?? 0, ...(heads ?? []));
  if (!heads) return { headCount, headWidths: undefined, kvBytesPerToken: 0 };
  const width = (number("embedding_length") ?? 0) / Math.max(...heads, 1);
  const headWidths = {
    key: number("attention.key_length") ?? width,
    value: number("attention.value_length") ?? width,
  };
  const kvHeads = (perLayer("head_count_kv") ?? heads).reduce((sum, count) => sum + count, 0);
  const kvBytes = Math.ceil(kvHeads * (headWidths.key + headWidths.value) * BYTES_PER_ELEMENT);
  const hasCache = !ENCODERS.has(architecture) && Number.isFinite(kvBytes) && kvBytes > 0;
  return { headCount, headWidths, kvBytesPerToken: hasCache ? kvBytes : 0 };
}

/** Maximum context length, which llama.cpp stores as a signed 32-bit integer. */
const MAX_CONTEXT = 2 ** 31 - 1;
/** Maximum embedding length; published models have up to 16,000. */
const MAX_EMBEDDING = 2 ** 20;
/** Maximum heads per block and elements per head; published models have below a thousand. */
const MAX_HEADS = 2 ** 16;
/** Maximum blocks; llama.cpp's limit is 512. */
const MAX_BLOCKS = 4096;
/** Vocabulary type of models that cannot tokenize text. */
const NO_VOCABULARY = "no_vocab";
/** Arrays parallel to the tokens, whose length and type llama.cpp does not check. */
const VOCABULARY_LISTS: readonly (readonly [key: string, types: readonly number[], name: string])[] = [
  ["tokenizer.ggml.scores", [6], "scores"],
  ["tokenizer.ggml.token_type", [4, 5], "token types"],
];
/**
 * Special tokens of WordPiece vocabularies, with llama.cpp's default ids. llama.cpp does not check that they exist
 * before it looks up their embeddings.
 */
const WORDPIECE = "bert";
const WORDPIECE_TOKENS: readonly (readonly [key: string, id: number, name: string])[] = [
  ["tokenizer.ggml.bos_token_id", 101, "to begin a text with"],
  ["tokenizer.ggml.seperator_token_id", 102, "to end a text with"],
  ["tokenizer.ggml.unknown_token_id", 100, "for words that it does not know"],
];
/** enum llama_pooling_type: unspecified, none, mean, first token, last token, rank. Other values crash the engine. */
const POOLING_TYPES: ReadonlySet<number> = new Set([-1, 0, 1, 2, 3, 4]);
/** Architectures in Ollama's format, which have another name, other keys and other tensors in llama.cpp. */
const OLLAMA_ARCHITECTURES: ReadonlySet<string> = new Set([
  "deepseekocr",
  "glm4moelite",
  "glmocr",
  "gptoss",
  "mllama",
  "qwen25vl",
]);
/** Keys of models without attention, which may have no heads. */
const WITHOUT_ATTENTION = /\.(?:ssm|wkv|shortconv|rwkv|token_shift)/;

/** Rejects headers of models that would load, but never work or crash the engine at the first request. */
function checkNumbers(metadata: Metadata, architecture: string, tensors: number): void {
  const checkedNumber = (key: string, max: number): number => {
    const value = metadata.get(`${architecture}.${key}`);
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new InvalidGguf(`its ${key.replaceAll("_", " ")} is ${valueText(value)}`);
  };
  checkedNumber("context_length", MAX_CONTEXT);
  checkedNumber("embedding_length", MAX_EMBEDDING);
  const blocks = checkedNumber("block_count", MAX_BLOCKS);
  if (blocks > tensors) throw new InvalidGguf(`it claims ${blocks} blocks and has ${tensors} tensors`);
  const pooling = metadata.get(`${architecture}.pooling_type`) ?? 0;
  if (typeof pooling !== "number" || !POOLING_TYPES.has(pooling)) {
    throw new InvalidGguf(`its pooling type is ${valueText(pooling)}, which llama.cpp does not know`);
  }
  checkHeads(metadata, architecture);
  checkVocabulary(metadata);
}

function checkHeads(metadata: Metadata, architecture: string): void {
  /** Returns one value for all blocks, or one per block; undefined if the key is missing. */
  const counts = (key: string, name: string): readonly number[] | undefined => {
    const value = metadata.get(`${architecture}.attention.${key}`);
    if (value === undefined) return undefined;
    const list = typeof value === "number" ? [value] : typeof value === "object" ? (value.numbers ?? []) : [];
    const areCounts = list.every((count) => Number.isInteger(count) && count >= 0 && count <= MAX_HEADS);
    if (list.length > 0 && areCounts) return list;
    throw new InvalidGguf(`its ${name} is ${valueText(value)}`);
  };
  const heads = counts("head_count", "number of attention heads");
  counts("head_count_kv", "number of attention heads with keys and values");
  counts("key_length", "length of attention keys");
  counts("value_length", "length of attention values");
  const needsHeads = ![...metadata.keys()].some((key) => WITHOUT_ATTENTION.test(key));
  if (needsHeads && heads?.every((count) => count === 0)) throw new InvalidGguf("it has no attention heads");
}

function checkVocabulary(metadata: Metadata): void {
  const model = metadata.get("tokenizer.ggml.model");
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const count = typeof tokens === "object" && tokens.type === STRING ? tokens.length : 0;
  if (typeof model !== "string" || model === NO_VOCABULARY || count === 0) {
    throw new InvalidGguf("it has no vocabulary, so it can neither read nor write text");
  }
  for (const [key, types, name] of VOCABULARY_LISTS) {
    const list = metadata.get(key);
    if (list === undefined) continue;
    if (typeof list !== "object" || !types.includes(list.type ?? -1) || list.length < count) {
      throw new InvalidGguf(`its vocabulary has ${count} tokens, and its list of ${name} does not match`);
    }
  }
  if (model !== WORDPIECE) return;
  for (const [key, fallback, name] of WORDPIECE_TOKENS) {
    const id = metadata.get(key);
    const isThere = typeof id === "number" && id >= 0 && id < count;
    if (!isThere && fallback >= count) throw new InvalidGguf(`its vocabulary has no token ${name}`);
  }
}

function valueText(value: MetadataValue | undefined): string {
  if (value === undefined) return "missing";
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : "out of all bounds";
  return "not a number";
}

/** Rejects Ollama's own GGUF format of some architectures, which llama.cpp does not read. */
function checkNotOllamaFormat(architecture: string, headers: readonly GgufHeader[]): void {
  const isForOllama =
    OLLAMA_ARCHITECTURES.has(architecture) || headers.some(({ tensors }) => tensors.hasEncoder);
  if (!isForOllama) return;
  throw new InvalidGguf(
    "it is in a form that only Ollama reads; get the model from the hub, where its GGUF files are llama.cpp's",
  );
}

/** Rejects files that are not all shards of one model in order, as llama.cpp does by the keys of gguf-split. */
function checkShards(headers: readonly [GgufHeader, ...GgufHeader[]]): void {
  const [{ metadata }] = headers;
  const count = metadata.get("split.count") ?? 1;
  if (headers.length === 1) {
    if (typeof count !== "number" || count <= 1) return;
    throw new InvalidGguf(
      `it is one of ${claimed(count)} shards, but its name does not tell where the others are`,
    );
  }
  if (count !== headers.length) {
    throw new InvalidGguf(
      `its name says that it is one of ${headers.length} shards, but its header does not`,
    );
  }
  for (const [index, header] of headers.entries()) {
    if (header.metadata.get("split.no") === index) continue;
    throw new InvalidGguf(`the file named shard ${index + 1} of ${headers.length} is not that shard`);
  }
  const tensors = headers.reduce((sum, header) => sum + header.tensors.count, 0);
  if (metadata.get("split.tensors.count") !== tensors) {
    throw new InvalidGguf(
      `its shards have ${tensors} tensors together, but its header says otherwise: one of them is incomplete or belongs to another model`,
    );
  }
}
