import { contextTokens, type EngineSpec } from "./protocol/engine-spec.ts";
import { MIN_STEP_TOKENS } from "./core/load-parameters.ts";
import type { Processors } from "./machine-limits.ts";
import type { Kernels } from "./engine-image.ts";

/** Properties of a model and machine from which the engine's settings follow. */
export interface SettingsInput {
  readonly purpose: EngineSpec["purpose"];
  /** Number of weights. */
  readonly parameters: number;
  readonly contextSize: number;
  readonly slots: number;
  readonly threads: number;
  /** Memory per token of a step; see {@link bytesPerStepToken}. */
  readonly bytesPerStepToken: number;
  /** Maximum memory for the intermediate results of a step; absent: 128 MiB. */
  readonly maxStepBytes?: number | undefined;
  /** Absent: llama.cpp's own kernels. */
  readonly kernels?: Kernels;
}

type SlotsInput = Omit<SettingsInput, "contextSize" | "bytesPerStepToken" | "maxStepBytes">;

/** The limits of engineSpecSchema. */
const MAX_THREADS = 32;
const MAX_BATCH = 8192;

/**
 * Longest step with the stock WASM. llama.cpp checks for cancelled requests only between steps, so a cancel may wait for
 * a step. With our kernels the engine measures its steps and adapts their size instead.
 */
const STOCK_STEP_SECONDS = 0.4;

/**
 * Weights times prompt tokens that one thread processes per second with the stock WASM, in the slowest common format
 * and on a slow machine.
 */
const STOCK_WEIGHT_TOKENS_PER_SECOND = 1.6e9;

/** Larger steps are hardly faster on a CPU. */
const MAX_STEP = 512;

/** Maximum memory for the intermediate results of a step; the rest is for models and contexts. */
const MAX_STEP_BYTES = 128 * 1024 ** 2;

/** With smaller steps the weights are read so often that prefill slows down. */
const MIN_EFFICIENT_STEP = 16;

/**
 * Threads of one engine: one per physical core, minus one for the daemon when every processor is a core. llama.cpp's
 * threads spin while they wait for each other, so one thread that shares its processor delays all the others.
 */
export function chooseThreads({ usable, cores }: Processors): number {
  return Math.min(MAX_THREADS, Math.max(1, Math.min(cores, usable - 1)));
}

/**
 * Slots of one engine. A step has at least one token per slot, and the stock kernels are slow per token, so with many
 * slots a large model could not be cancelled quickly. It gets fewer slots, at least two, and more requests queue.
 * @param slots as configured
 */
export function chooseSlots({ purpose, parameters, slots, threads, kernels = "stock" }: SlotsInput): number {
  if (purpose !== "generate" || kernels !== "stock") return slots;
  return Math.min(slots, Math.max(MIN_STEP_TOKENS, stockStepTokens(parameters, threads)));
}

/**
 * Maximum prompt tokens per step, a multiple of the slots. For generation with the stock WASM, few enough that a cancel
 * takes effect within a second, but at least one per slot, because decoding comes first and prompts get the rest. For
 * embedding and reranking, the full context, because a text cannot be split.
 */
export function chooseBatchSize({
  purpose,
  parameters,
  contextSize,
  slots,
  threads,
  bytesPerStepToken,
  maxStepBytes = MAX_STEP_BYTES,
  kernels = "stock",
}: SettingsInput): number {
  if (purpose !== "generate") return Math.min(contextSize, MAX_BATCH);
  const affordable = Math.max(MIN_EFFICIENT_STEP, Math.floor(maxStepBytes / bytesPerStepToken));
  const acceptable = kernels === "stock" ? stockStepTokens(parameters, threads) : affordable;
  const step = Math.min(MAX_STEP, contextSize, affordable, acceptable);
  return Math.max(slots, MIN_STEP_TOKENS, step - (step % slots));
}

/**
 * Largest KV cache with which every slot gets a context of its own. Small models stay far below it; for large ones,
 * there are better uses for the memory.
 */
const CHEAP_CACHE_BYTES = 1024 ** 3;

/** Largest share of the machine's memory for such a KV cache. */
const CHEAP_CACHE_SHARE = 1 / 16;

/**
 * True if each slot gets a context of its own: it must be useful, which it is not for an encoder, and easily fit into
 * memory.
 * @param question.kvBytesPerToken bytes of KV cache per token
 * @param question.memory the machine's memory in bytes
 * @param question.maxBytes largest KV cache of all slots; by default 1 GiB
 */
export function canAffordContextPerSlot({
  purpose,
  contextSize,
  slots,
  kvBytesPerToken,
  memory,
  maxBytes = CHEAP_CACHE_BYTES,
}: Pick<SettingsInput, "purpose" | "contextSize" | "slots"> & {
  readonly kvBytesPerToken: number;
  readonly memory: number;
  readonly maxBytes?: number | undefined;
}): boolean {
  if (purpose !== "generate" || slots === 1) return false;
  const cacheBytes = kvBytesPerToken * contextTokens({ contextSize, slots, sharedContext: false });
  return cacheBytes <= Math.min(maxBytes, memory * CHEAP_CACHE_SHARE);
}

/** Tokens that the stock WASM processes in the longest acceptable step. */
function stockStepTokens(parameters: number, threads: number): number {
  return Math.floor(
    ((STOCK_WEIGHT_TOKENS_PER_SECOND * threads) / Math.max(1, parameters)) * STOCK_STEP_SECONDS,
  );
}
