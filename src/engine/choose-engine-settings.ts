import { contextTokens } from "./context-tokens.ts";
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
 * A step of the stock WASM may take this long. llama.cpp looks for a cancelled request between steps only, and a cancel
 * that just missed one waits for the whole of it: less than half a second leaves room for a machine that is busy otherwise.
 * With our kernels the engine measures its steps and makes them as long as is good for whoever waits.
 */
const STOCK_STEP_SECONDS = 0.4;

/**
 * Weights times prompt tokens that one thread of an ordinary core gets through in a second with llama.cpp's WASM as it is
 * shipped, which reaches 3.9 tokens/s (Q4_0) to 12.6 (Q4_K) for 500 million weights. The slowest of the common formats
 * counts, less a fifth for machines that are slower still.
 */
const STOCK_WEIGHT_TOKENS_PER_SECOND = 1.6e9;

/** Larger steps gain nothing measurable on a CPU: steps of 256 read a prompt 5 percent faster than steps of 64. */
const LARGEST_STEP = 512;

/** Nor may their intermediate results take memory that models and contexts have better uses for. */
const LARGEST_STEP_BYTES = 128 * 1024 ** 2;

/** With fewer tokens in a step weights are read so often that it costs: a fifth of the speed. */
const SMALLEST_LARGEST_STEP = 16;

/**
 * Threads of one engine: one for each physical core, but where every processor is a core one less, for the daemon and
 * for others. llama.cpp's threads wait for each other by spinning, so one that has to share its processor holds all the
 * others up.
 */
export function chooseThreads({ usable, cores }: Processors): number {
  return Math.min(MOST_THREADS, Math.max(1, Math.min(cores, usable - 1)));
}

/**
 * Slots of one engine. llama.cpp's steps have one token for each slot at least, and its own kernels are so slow that
 * with several slots even the smallest step of a middling model takes longer than a cancel should: such a model gets
 * as few slots as it takes, two at least, and further requests wait. Little is lost, for a step of several tokens
 * takes these kernels as many times as long.
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
 * Most prompt tokens of one step, a multiple of the slots. Generating: with the stock WASM so few that a cancel is obeyed
 * within a second, but one for each slot at least, because generating slots are served first and a waiting prompt takes
 * what they leave. Embedding and reranking: the whole context, because a text cannot be split.
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
 * A KV cache up to this size may be had for every slot. Small models stay far below it, and their requests need not
 * wait for each other; for large ones it would be memory that they, or other models, have better uses for.
 */
const CHEAP_CACHE_BYTES = 1024 ** 3;

/** Nor may it take more of the machine than this, which is 512 MiB of a laptop's 8 GiB. */
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
