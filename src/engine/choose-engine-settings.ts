import { contextTokens } from "./protocol/engine-spec.ts";
import { SMALLEST_STEP } from "./core/load-parameters.ts";
import type { Processors } from "./machine-processors.ts";
import type { Kernels } from "./prepare-engine.ts";
import type { EngineSpec } from "./protocol/engine-spec.ts";

/** What the choice of settings depends on; plain numbers, so that any layer can ask. */
export interface SettingsQuestion {
  readonly purpose: EngineSpec["purpose"];
  /** Weights of the model. */
  readonly parameters: number;
  /** Tokens of context. */
  readonly contextSize: number;
  readonly slots: number;
  readonly threads: number;
  /** Memory that each token of a step takes; see {@link bytesPerStepToken}. */
  readonly bytesPerStepToken: number;
  /** Which code multiplies matrices; absent: llama.cpp's own. */
  readonly kernels?: Kernels;
}

type SlotsQuestion = Omit<SettingsQuestion, "contextSize" | "bytesPerStepToken">;

/** The limits of engineSpecSchema. */
const MOST_THREADS = 32;
const MOST_BATCH = 8192;

/**
 * Longest step with the stock WASM. llama.cpp checks for cancelled requests only between steps, so a cancel may have to
 * wait for a whole step. With our kernels the engine times its steps and adapts their size instead.
 */
const STOCK_STEP_SECONDS = 0.4;

/**
 * Weights times prompt tokens that one thread of an ordinary core processes per second with the stock WASM. Based on the
 * slowest common format, with a margin for slower machines.
 */
const STOCK_WEIGHT_TOKENS_PER_SECOND = 1.6e9;

/** Larger steps are hardly faster on a CPU. */
const LARGEST_STEP = 512;

/** Most memory for the intermediate results of a step; models and contexts need it more. */
const LARGEST_STEP_BYTES = 128 * 1024 ** 2;

/** With smaller steps the weights are read so often that prefill slows down. */
const SMALLEST_LARGEST_STEP = 16;

/**
 * Threads of one engine: one per physical core, minus one for the daemon when every processor is a core. llama.cpp's
 * threads spin while they wait for each other, so one thread that shares its processor delays all the others.
 */
export function chooseThreads({ usable, cores }: Processors): number {
  return Math.min(MOST_THREADS, Math.max(1, Math.min(cores, usable - 1)));
}

/**
 * Slots of one engine. A step has at least one token per slot. With the stock kernels, whose time grows with every
 * token of a step, many slots would make a cancel wait too long: such a model gets fewer slots, at least two, and more
 * requests queue.
 * @param slots as configured
 */
export function chooseSlots({
  purpose,
  parameters,
  slots,
  threads,
  kernels = "stock",
}: SlotsQuestion): number {
  if (purpose !== "generate" || kernels !== "stock") return slots;
  return Math.min(slots, Math.max(SMALLEST_STEP, stockStepTokens(parameters, threads)));
}

/**
 * Most prompt tokens of one step, a multiple of the slots. For generation with the stock WASM, few enough that a cancel
 * takes effect within a second, but at least one per slot, because generating slots come first and prompts get the rest.
 * For embedding and reranking, the whole context, because a text cannot be split.
 */
export function chooseBatchSize({
  purpose,
  parameters,
  contextSize,
  slots,
  threads,
  bytesPerStepToken,
  kernels = "stock",
}: SettingsQuestion): number {
  if (purpose !== "generate") return Math.min(contextSize, MOST_BATCH);
  const affordable = Math.max(SMALLEST_LARGEST_STEP, Math.floor(LARGEST_STEP_BYTES / bytesPerStepToken));
  const bearable = kernels === "stock" ? stockStepTokens(parameters, threads) : affordable;
  const step = Math.min(LARGEST_STEP, contextSize, affordable, bearable);
  return Math.max(slots, SMALLEST_STEP, step - (step % slots));
}

/**
 * Largest KV cache that is allocated in full for every slot. Small models stay far below it; for large ones, the memory
 * is better used otherwise.
 */
const CHEAP_CACHE_BYTES = 1024 ** 3;

/** Largest share of the machine's memory for such a KV cache. */
const CHEAP_CACHE_SHARE = 1 / 16;

/**
 * Whether each slot may have a context of its own: it is worth something, and memory is no reason against it. An
 * encoder keeps no context.
 * @param question.kvBytesPerToken bytes of KV cache for one token
 * @param question.memory bytes of the machine
 */
export function canAffordOwnContexts({
  purpose,
  contextSize,
  slots,
  kvBytesPerToken,
  memory,
}: Pick<SettingsQuestion, "purpose" | "contextSize" | "slots"> & {
  readonly kvBytesPerToken: number;
  readonly memory: number;
}): boolean {
  if (purpose !== "generate" || slots === 1) return false;
  const cacheBytes = kvBytesPerToken * contextTokens({ contextSize, slots, sharedContext: false });
  return cacheBytes <= Math.min(CHEAP_CACHE_BYTES, memory * CHEAP_CACHE_SHARE);
}

/** How many tokens the stock WASM gets through in the time that a step may take. */
function stockStepTokens(parameters: number, threads: number): number {
  return Math.floor(
    ((STOCK_WEIGHT_TOKENS_PER_SECOND * threads) / Math.max(1, parameters)) * STOCK_STEP_SECONDS,
  );
}
