import { z } from "zod";

/**
 * What machines tell each other about themselves. Whoever can reach the NATS server may have written it, so every text and
 * list has a limit.
 */

/** Machines with another number do not work together; it changes when a message does. */
export const PROTOCOL = 1;

/** The revision of a card whose machine has only been started, and has not looked at its models yet. */
export const NOT_DESCRIBED = 0;

/** Of a message with a card: hundreds of models; what is longer is not read. */
export const MOST_CARD_BYTES = 256 * 1024;
/** Of a message with a beat. */
export const MOST_BEAT_BYTES = 64 * 1024;
/** Longest name of a model, file, processor or GPU. */
const MOST_CHARACTERS = 1024;
/** More than fit into a message. */
const MOST_MODELS = 10_000;
const MOST_GPUS = 64;
const MOST_ADAPTERS = 16;

const text = z.string().max(MOST_CHARACTERS);
const count = z.int().min(0);
const bytes = z.number().min(0);
/** Random, for one run of a daemon. */
export const idSchema = z.string().regex(/^[0-9a-f]{32}$/);
const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** Of a GGUF header, what lists of models show. */
const ggufSchema = z.object({
  architecture: text,
  name: text.optional(),
  license: text.optional(),
  parameters: bytes,
  vocabSize: count,
  contextLength: count,
  embeddingLength: count,
  blockCount: count,
  quantization: text,
  fileSize: bytes,
  purpose: z.enum(["generate", "embed", "rerank"]),
});

const cardModelSchema = z.object({
  alias: text,
  /** Where it comes from on the hub. */
  spec: text.optional(),
  /** SHA-256 of what identifies its files; equal for the same files, wherever they are. */
  files: hash,
  /** SHA-256 of the settings that its answers depend on. */
  settings: hash,
  /** Bytes of memory that its files take when it is loaded, at least. */
  bytes,
  gguf: ggufSchema,
  capabilities: z.object({
    vision: z.boolean(),
    audio: z.boolean(),
    tools: z.boolean(),
    thinking: z.boolean(),
    json: z.boolean(),
  }),
  contextSize: count,
  adapters: z.array(text).max(MOST_ADAPTERS),
  modifiedAt: z.number().min(0),
  isDefault: z.boolean(),
});
export type CardModel = z.infer<typeof cardModelSchema>;

const gpuSchema = z.object({ name: text, backend: text, memory: bytes.optional() });

/** What rarely changes. Other machines ask for it when a beat has a revision that they do not know. */
export const cardSchema = z.object({
  protocol: z.literal(PROTOCOL),
  id: idSchema,
  revision: count,
  name: text,
  version: text,
  /** SHA-256 of the engine's WebAssembly: equal ones generate equal texts. */
  engine: text,
  processor: z.object({ name: text, system: text, usable: count, cores: count }),
  gpus: z.array(gpuSchema).max(MOST_GPUS),
  /** Bytes of the machine, and those that models may use. */
  memory: z.object({ total: bytes, models: bytes }),
  models: z.array(cardModelSchema).max(MOST_MODELS),
});
export type Card = z.infer<typeof cardSchema>;

const loadedSchema = z.object({
  alias: text,
  slots: count,
  running: count,
  waiting: count,
  contextSize: count,
  gpuLayers: count,
});

const speedSchema = z.object({
  alias: text,
  /** Tokens per second of its last answers and prompts. */
  decode: z.number().min(0),
  prefill: z.number().min(0),
});

/** Sent twice a second by each machine, and once more when it leaves. */
export const beatSchema = z.object({
  protocol: z.int(),
  id: idSchema,
  revision: count,
  state: z.enum(["ready", "draining", "gone"]),
  /** Bytes that models use. */
  memoryUsed: bytes,
  loaded: z.array(loadedSchema).max(MOST_MODELS),
  speeds: z.array(speedSchema).max(MOST_MODELS),
});
export type Beat = z.infer<typeof beatSchema>;
