import type { GgufSummary } from "../model.ts";
import { callTokens } from "./call-tokens.ts";
import { checkFigures } from "./check-figures.ts";
import { checkShards } from "./check-shards.ts";
import { FILE_TYPE_NAMES } from "./ggml-types.ts";
import { infillTokens } from "./infill-tokens.ts";
import { InvalidGguf } from "./invalid-gguf.ts";
import { kvBytesPerToken, largestHeadCount } from "./kv-bytes.ts";
import { auxiliaryKind, isEncoder, modelPurpose } from "./model-purpose.ts";
import type { GgufHeader } from "./read-header.ts";

/**
 * What the headers of a model's files say, in order; only the first shard describes the model, the others add
 * weights. Throws InvalidGguf when they do not make a model.
 */
export function summariseHeaders(headers: readonly [GgufHeader, ...GgufHeader[]]): GgufSummary {
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
    blockCount: count("block_count"),
    quantisation: quantisation(headers),
    fileSize: headers.reduce((sum, header) => sum + header.fileSize, 0),
    chatTemplate: text("tokenizer.chat_template"),
    callTokens: callTokens(first.metadata),
    infill: infillTokens(first.metadata),
    kvBytesPerToken: isEncoder(architecture) ? 0 : kvBytesPerToken(first.metadata, architecture),
    weightBytes: weightBytes(headers),
    purpose: modelPurposeOf(headers, architecture),
    auxiliary,
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

function quantisation(headers: readonly [GgufHeader, ...GgufHeader[]]): string {
  const fileType = headers[0].metadata.get("general.file_type");
  const named = typeof fileType === "number" ? FILE_TYPE_NAMES.get(fileType) : undefined;
  return named ?? headers.find((header) => header.tensors.mainType)?.tensors.mainType ?? "unknown";
}
