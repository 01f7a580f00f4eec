import { z } from "zod";
import { loadSettingsSchema } from "../../config/load-settings.ts";
import { gpuDeviceSchema } from "../gpu/gpu-report.ts";
import { MAX_GUESSED } from "./sampling-fields.ts";

const loraAdapterSchema = z.object({ path: z.string(), scale: z.number() });

/**
 * What one engine process loads. The daemon has resolved and checked every path (no symlink leaves the model's own
 * files); the engine may read these files and nothing else.
 */
export const engineSpecSchema = z.object({
  ...loadSettingsSchema.shape,
  /** The model's GGUF file, or all its shards in order. Absolute paths without symlinks. */
  modelFiles: z.array(z.string()).min(1),
  /** Multimodal projector. */
  projectorFile: z.string().optional(),
  /** The projector has an audio encoder. */
  hearsAudio: z.boolean().optional(),
  adapters: z.array(loraAdapterSchema),
  /** A small model with the same tokens, which guesses what this one will say. */
  draft: z
    .object({
      path: z.string(),
      /** Bytes of its KV cache per token, at f16. */
      kvBytesPerToken: z.number().min(0),
    })
    .optional(),
  /** generate: completions and mean-pooled embeddings; embed: an embedding model; rerank: a reranker. */
  purpose: z.enum(["generate", "embed", "rerank"]),
  /** Tokens of context for one request. */
  contextSize: z.int().min(16),
  /** True when all slots share one context; otherwise each has its own, which multiplies the KV cache. */
  sharedContext: z.boolean(),
  /** Layers to offload: 0 for none, -1 for all. Nothing is offloaded without an adapter in `gpu`. */
  gpuLayers: z.int().min(-1),
  /** The adapter to which layers are offloaded. */
  gpu: gpuDeviceSchema
    .extend({
      /** Layers of the model, including the output layer. */
      layers: z.int().min(1),
      /** Prompt tokens per step on the GPU, instead of `batchSize`. */
      batchSize: z.int().min(1).max(8192),
      /** False to describe each step to the GPU again; absent: what was described before is repeated. */
      replay: z.boolean().optional(),
    })
    .optional(),
  /** Sequences that are decoded together. */
  slots: z.int().min(1).max(64),
  threads: z.int().min(1).max(32),
  /** Prompt tokens per step. Cancellation and the other slots wait for a whole step. */
  batchSize: z.int().min(1).max(8192),
  flashAttention: z.enum(["auto", "true", "false"]),
  /** A Jinja template that replaces the one in the GGUF. */
  chatTemplate: z.string().optional(),
  /** Drop the oldest tokens instead of stopping when the context is full; only without a shared context. */
  contextShift: z.boolean(),
  /** Most tokens to guess at once for a request that does not say; absent: none. */
  guessTokens: z.int().min(0).max(MAX_GUESSED).optional(),
  /** Bytes of the heap for prompts that no slot holds any more; absent: none. */
  promptCacheBytes: z.int().min(0).optional(),
});
export type EngineSpec = z.infer<typeof engineSpecSchema>;

/** Tokens that the KV cache of an engine holds: one context when the slots share it, otherwise one per slot. */
export function contextTokens({
  contextSize,
  slots,
  sharedContext,
}: Pick<EngineSpec, "contextSize" | "slots" | "sharedContext">): number {
  return sharedContext ? contextSize : contextSize * slots;
}

/** What the engine reports about the model after loading it. */
export const engineInfoSchema = z.object({
  /** Tokens of context that one request actually has. */
  contextSize: z.int(),
  /** Tokens in the KV cache of all slots together. */
  contextTokens: z.int(),
  trainedContextSize: z.int(),
  vocabSize: z.int(),
  embeddingSize: z.int(),
  layers: z.int(),
  /** Layers actually offloaded to a GPU. */
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

/** Numbers in a block of a quantized cache. */
export const KV_BLOCK = 32;

/** Bytes per number for each type. */
export const CACHE_TYPE_BYTES: Readonly<Record<KvCacheType, number>> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / KV_BLOCK,
  q5_1: 24 / KV_BLOCK,
  q5_0: 22 / KV_BLOCK,
  q4_1: 20 / KV_BLOCK,
  q4_0: 18 / KV_BLOCK,
};

/** Whether keys or values of this type are kept in blocks with a common scale. */
export function isQuantizedCache(type: KvCacheType | undefined): boolean {
  return type !== undefined && type !== "f16" && type !== "f32";
}

/** Bytes of KV cache per token, with as many numbers in K as in V. @param atHalf the same with both in f16 */
export function kvBytesPerToken(
  atHalf: number,
  { cacheTypeK = "f16", cacheTypeV = "f16" }: KvCacheTypes,
): number {
  return (atHalf / 2 / CACHE_TYPE_BYTES.f16) * (CACHE_TYPE_BYTES[cacheTypeK] + CACHE_TYPE_BYTES[cacheTypeV]);
}
