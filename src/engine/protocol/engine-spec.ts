import { z } from "zod";
import { loadSettingsSchema } from "../../config/load-settings.ts";
import { gpuDeviceSchema } from "../gpu/gpu-report.ts";
import { MAX_DRAFT_TOKENS } from "./sampling-fields.ts";

const loraAdapterSchema = z.object({ path: z.string(), scale: z.number() });

/**
 * Model, files and settings that an engine process loads. The daemon has resolved every path and checked that no
 * symlink leads outside the model's files. The engine can read only these files.
 */
export const engineSpecSchema = z.object({
  ...loadSettingsSchema.shape,
  /** The model's GGUF file, or all its shards in order. Absolute paths without symlinks. */
  modelFiles: z.array(z.string()).min(1),
  projectorFile: z.string().optional(),
  /** The projector has an audio encoder. */
  hearsAudio: z.boolean().optional(),
  adapters: z.array(loraAdapterSchema),
  /** Draft model for speculative decoding, with the same vocabulary. */
  draft: z
    .object({
      path: z.string(),
      /** Bytes of the draft model's KV cache per token, at f16. */
      kvBytesPerToken: z.number().min(0),
    })
    .optional(),
  /** generate: completions and mean-pooled embeddings; embed: an embedding model; rerank: a reranker. */
  purpose: z.enum(["generate", "embed", "rerank"]),
  /** Tokens of context for one request. */
  contextSize: z.int().min(16),
  /** True if all slots share one context. Otherwise each slot has its own, which multiplies the KV cache. */
  sharedContext: z.boolean(),
  /** Layers to offload: 0 for none, -1 for all. Nothing is offloaded unless `gpu` names a GPU. */
  gpuLayers: z.int().min(-1),
  /** GPU to which layers are offloaded. */
  gpu: gpuDeviceSchema
    .extend({
      /** Layers of the model, including the output layer. */
      layers: z.int().min(1),
      /** Prompt tokens per step on the GPU, instead of `batchSize`. */
      batchSize: z.int().min(1).max(8192),
      /** False: record the GPU commands of every step anew. Absent: replay the recorded commands of an equal step. */
      replay: z.boolean().optional(),
    })
    .optional(),
  /** Number of sequences that are decoded together. */
  slots: z.int().min(1).max(64),
  threads: z.int().min(1).max(32),
  /** Prompt tokens per step. Cancellation and other slots wait until the current step ends. */
  batchSize: z.int().min(1).max(8192),
  flashAttention: z.enum(["auto", "true", "false"]),
  /** A Jinja template that replaces the one in the GGUF. */
  chatTemplate: z.string().optional(),
  /** When the context is full, drop the oldest tokens instead of stopping. Only without a shared context. */
  contextShift: z.boolean(),
  /** Default for the number of tokens to draft at once (speculative decoding); absent: no drafts. */
  guessTokens: z.int().min(0).max(MAX_DRAFT_TOKENS).optional(),
  /** Bytes of heap for cached prompts that are no longer in any slot; absent: no such cache. */
  promptCacheBytes: z.int().min(0).optional(),
});
export type EngineSpec = z.infer<typeof engineSpecSchema>;

/** Size of an engine's KV cache in tokens: one context if the slots share it, otherwise one per slot. */
export function contextTokens({
  contextSize,
  slots,
  sharedContext,
}: Pick<EngineSpec, "contextSize" | "slots" | "sharedContext">): number {
  return sharedContext ? contextSize : contextSize * slots;
}

/** Report of an engine about the loaded model. */
export const engineInfoSchema = z.object({
  /** Tokens of context that one request can use. */
  contextSize: z.int(),
  /** Tokens in the KV cache of all slots together. */
  contextTokens: z.int(),
  trainedContextSize: z.int(),
  vocabSize: z.int(),
  embeddingSize: z.int(),
  layers: z.int(),
  /** Number of layers that were offloaded to a GPU. */
  gpuLayers: z.int(),
  /** Duration of a full prefill step on the GPU, in milliseconds; absent when unknown. */
  stepMs: z.number().optional(),
  threads: z.int(),
  hasChatTemplate: z.boolean(),
  hasImageInput: z.boolean(),
  hasAudioInput: z.boolean(),
  /** llama.cpp's version, as the WASM reports it. */
  backendVersion: z.string(),
});
export type EngineInfo = z.infer<typeof engineInfoSchema>;

type KvCacheType = NonNullable<EngineSpec["cacheTypeK"]>;
export type KvCacheTypes = Pick<EngineSpec, "cacheTypeK" | "cacheTypeV">;

/** Numbers per quantization block of a quantized KV cache. */
export const KV_BLOCK_SIZE = 32;

/** Bytes per number of each type. */
export const CACHE_TYPE_BYTES: Readonly<Record<KvCacheType, number>> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / KV_BLOCK_SIZE,
  q5_1: 24 / KV_BLOCK_SIZE,
  q5_0: 22 / KV_BLOCK_SIZE,
  q4_1: 20 / KV_BLOCK_SIZE,
  q4_0: 18 / KV_BLOCK_SIZE,
};

/** True if keys or values of this type are stored in quantization blocks. */
export function isQuantizedCacheType(type: KvCacheType | undefined): boolean {
  return type !== undefined && type !== "f16" && type !== "f32";
}

/**
 * Bytes of KV cache per token. Assumes as many numbers in K as in V.
 * @param f16BytesPerToken bytes per token if both were f16
 */
export function kvBytesPerToken(
  f16BytesPerToken: number,
  { cacheTypeK = "f16", cacheTypeV = "f16" }: KvCacheTypes,
): number {
  return (
    (f16BytesPerToken / 2 / CACHE_TYPE_BYTES.f16) *
    (CACHE_TYPE_BYTES[cacheTypeK] + CACHE_TYPE_BYTES[cacheTypeV])
  );
}
