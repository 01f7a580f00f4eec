import type { GgufSummary } from "../model.ts";
import { callTokens, infillTokens } from "./vocabulary-markers.ts";
import { checkFigures, checkForm, checkShards } from "./check-model.ts";
import { FILE_TYPE_NAMES } from "./ggml-types.ts";
import { InvalidGguf } from "./byte-reader.ts";
import type { GgufHeader } from "./read-header.ts";
import type { Metadata } from "./read-metadata.ts";

/** Architectures that only encode: they embed or rank, and never generate. */
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
/** f16 */
const BYTES_PER_ELEMENT = 2;
/** No model has more layers; the file's own number is not trusted. */
const MAX_LAYERS = 4096;

/**
 * Summarizes the headers of a model's files, in order. Only the first shard describes the model; the others add weights.
 * Throws InvalidGguf if they are not a model.
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
    checkForm(architecture, headers);
    const tensors = headers.reduce((sum, header) => sum + header.tensors.count, 0);
    checkFigures(first.metadata, architecture, tensors);
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
    headCount: largestHeadCount(first.metadata, architecture),
    headWidths: headWidths(first.metadata, architecture),
    blockCount: count("block_count"),
    quantization: quantization(headers),
    fileSize: headers.reduce((sum, header) => sum + header.fileSize, 0),
    chatTemplate: text("tokenizer.chat_template"),
    callTokens: callTokens(first.metadata),
    infill: infillTokens(first.metadata),
    kvBytesPerToken: isEncoder(architecture) ? 0 : kvBytesPerToken(first.metadata, architecture),
    weightBytes: weightBytes(headers),
    purpose: modelPurposeOf(headers, architecture),
    auxiliary,
    media: encoders(first.metadata),
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

/** The head of a reranker may lie in any shard. */
function modelPurposeOf(
  headers: readonly [GgufHeader, ...GgufHeader[]],
  architecture: string,
): GgufSummary["purpose"] {
  const [first] = headers;
  const hasRankHead = headers.some((header) => header.tensors.hasRankHead);
  return modelPurpose({ ...first, tensors: { ...first.tensors, hasRankHead } }, architecture);
}

function quantization(headers: readonly [GgufHeader, ...GgufHeader[]]): string {
  const fileType = headers[0].metadata.get("general.file_type");
  const named = typeof fileType === "number" ? FILE_TYPE_NAMES.get(fileType) : undefined;
  return named ?? headers.find((header) => header.tensors.mainType)?.tensors.mainType ?? "unknown";
}

function isEncoder(architecture: string): boolean {
  return ENCODERS.has(architecture);
}

/**
 * What a model is for. A reranker has a rank head; without it the model runs but its scores mean nothing, so such a
 * model only embeds.
 */
function modelPurpose(header: GgufHeader, architecture: string): GgufSummary["purpose"] {
  const value = header.metadata.get(`${architecture}.pooling_type`);
  const pooling = typeof value === "number" ? value : POOLING_NONE;
  const encoder = isEncoder(architecture);
  if (header.tensors.hasRankHead && (encoder || pooling === POOLING_RANK)) return "rerank";
  return encoder || pooling !== POOLING_NONE ? "embed" : "generate";
}

/** The oldest projectors do not say that they have the only encoder that there was, which is one for images. */
function encoders(metadata: Metadata): GgufSummary["media"] {
  const audio = metadata.get("clip.has_audio_encoder") === true;
  return { image: (metadata.get("clip.has_vision_encoder") ?? !audio) === true, audio };
}

/** Adapters and projectors are loaded together with a model, never as one. */
function auxiliaryKind(header: GgufHeader, architecture: string): GgufSummary["auxiliary"] {
  const kind = header.metadata.get("general.type");
  if (kind === "adapter" || header.metadata.has("adapter.type")) return "adapter";
  return kind === "mmproj" || architecture === "clip" ? "projector" : undefined;
}

/** Numbers in a key and in a value of one head, where the header says how many heads there are. */
function headWidths(metadata: Metadata, architecture: string): GgufSummary["headWidths"] {
  const layers = numberIn(metadata, `${architecture}.block_count`) ?? 0;
  const heads = perLayer(metadata, `${architecture}.attention.head_count`, layers);
  if (!heads) return undefined;
  const width = (numberIn(metadata, `${architecture}.embedding_length`) ?? 0) / Math.max(...heads, 1);
  return {
    key: numberIn(metadata, `${architecture}.attention.key_length`) ?? width,
    value: numberIn(metadata, `${architecture}.attention.value_length`) ?? width,
  };
}

function numberIn(metadata: Metadata, key: string): number | undefined {
  const value = metadata.get(key);
  return typeof value === "number" ? value : undefined;
}

/**
 * Bytes of KV cache per token of context at f16, for all layers. Layers with a sliding window are counted like the
 * others, so this is an upper bound. Architectures without attention have none.
 */
function kvBytesPerToken(metadata: Metadata, architecture: string): number {
  const layers = numberIn(metadata, `${architecture}.block_count`) ?? 0;
  const heads = perLayer(metadata, `${architecture}.attention.head_count`, layers);
  const kvHeads = perLayer(metadata, `${architecture}.attention.head_count_kv`, layers) ?? heads;
  const widths = headWidths(metadata, architecture);
  if (!widths || !kvHeads) return 0;
  const elements = widths.key + widths.value;
  const total = kvHeads.reduce((sum, count) => sum + count, 0) * elements * BYTES_PER_ELEMENT;
  return Number.isFinite(total) && total > 0 ? Math.ceil(total) : 0;
}

/** Attention heads of the layer with the most; 0 if the header does not say. */
function largestHeadCount(metadata: Metadata, architecture: string): number {
  return Math.max(0, ...(perLayer(metadata, `${architecture}.attention.head_count`, 1) ?? []));
}

function perLayer(metadata: Metadata, key: string, layers: number): readonly number[] | undefined {
  const value = metadata.get(key);
  if (typeof value === "number") return Array.from({ length: Math.min(layers, MAX_LAYERS) }, () => value);
  return typeof value === "object" ? value.numbers : undefined;
}
