import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { EngineSettings } from "./load-parameters.ts";
import type { BlobLike } from "./platform.ts";
import type { TextPatch } from "./worker-patches.ts";

/** Indices in an Int32Array of the cells with which our kernels control steps (wasm/kernels/steps.h). */
const STEP_TOKENS = MEMORY_CELLS.stepTokens / 4;
const LEAVE_STEP = MEMORY_CELLS.leaveStep / 4;
const GUESSED_TOKENS = MEMORY_CELLS.guessedTokens / 4;

/** First step, short enough for the slowest machine. */
const FIRST_TOKENS = 16;

/** Longest step while several requests run: other slots, new requests and cancellation wait for it. */
const SHARED_STEP_MS = 400;

/**
 * Longest step for a single request. Longer steps process a prompt faster, since each step reads all weights. A single
 * request can abort its step, so only a second request would have to wait.
 */
const ALONE_STEP_MS = 2000;

/** Smallest step for a single request; smaller ones would make prompts slower. */
const MIN_ALONE_TOKENS = 32;

/** Limits how much longer the next step may be, in case the last one was unusually fast. */
const MAX_GROWTH = 2;

/** Our kernels multiply groups of this many tokens. */
const GROUP = 4;

/** Chooses the size of each step from the duration of earlier ones, and aborts steps. */
export class StepControl {
  readonly #max: number;
  readonly #min: number;
  readonly #cells: () => Int32Array | undefined;
  #tokensPerMs: number | undefined;
  #tokens = 0;

  /**
   * @param max tokens of a step with which llama.cpp was loaded
   * @param slots each may have a token in every step
   * @param memory of the WASM, shared with the thread that computes; absent: steps keep their size and cannot be
   *   aborted
   */
  constructor(max: number, slots: number, memory: WebAssembly.Memory | undefined) {
    this.#max = max;
    this.#min = Math.min(max, Math.max(GROUP, slots));
    // The buffer is replaced when the memory grows.
    this.#cells = () => memory && new Int32Array(memory.buffer, 0, GUESSED_TOKENS + 1);
  }

  /**
   * Sets the size of the next step. Call it between steps.
   * @param isAlone there is only one request
   * @param isWhole a request cannot be split, such as a text to embed
   * @param left prompt tokens that are left, as far as is known: they are split evenly, since a short last step would
   *   cost almost as much as a full one
   */
  next(isAlone: boolean, isWhole: boolean, left = 0): void {
    const cells = this.#cells();
    if (!cells) return;
    if (isWhole) this.#tokens = this.#max;
    else if (isAlone) this.#tokens = this.#choose(ALONE_STEP_MS, MIN_ALONE_TOKENS);
    else this.#tokens = this.#choose(SHARED_STEP_MS, this.#min);
    const even = left > 0 ? left / Math.ceil(left / this.#tokens) : this.#tokens;
    const tokens = Math.min(this.#tokens, Math.ceil(even / GROUP) * GROUP);
    Atomics.store(cells, STEP_TOKENS, tokens);
    Atomics.store(cells, LEAVE_STEP, 0);
  }

  /** Records how many prompt tokens a step has processed, and in what time. */
  measured(tokens: number, ms: number): void {
    if (tokens > 0 && ms > 0) this.#tokensPerMs = tokens / ms;
  }

  /** Tokens that were guessed for the last step, and of which it may have kept some. */
  get guessed(): number {
    const cells = this.#cells();
    return cells ? Atomics.load(cells, GUESSED_TOKENS) : 0;
  }

  /** Aborts the current step after its next operator. Only for a single request. */
  leave(): void {
    const cells = this.#cells();
    if (cells) Atomics.store(cells, LEAVE_STEP, 1);
  }

  #choose(ms: number, least: number): number {
    const known = this.#tokensPerMs;
    if (known === undefined) return Math.min(this.#max, Math.max(this.#min, FIRST_TOKENS));
    const fitting = Math.min(known * ms, MAX_GROWTH * Math.max(this.#tokens, FIRST_TOKENS));
    return Math.min(this.#max, Math.max(least, Math.floor(fitting / GROUP) * GROUP));
  }
}

/** A larger one is no help in any case. */
const MOST = 1000;

/**
 * Tells our kernels what a step of the draft model costs, in hundredths of one of the model, until they have measured it
 * (wasm/kernels/step-costs.h). A step of one token reads all weights, so that files tell it, unless the model is a mixture of
 * experts, which reads fewer.
 */
export function draftCostPatch(model: readonly BlobLike[], draft: BlobLike): TextPatch {
  const bytes = model.reduce((sum, { size }) => sum + size, 0);
  const cost = Math.min(MOST, Math.ceil((100 * draft.size) / bytes));
  return {
    purpose: "tell what a step of the draft model costs",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setFloat32(${MEMORY_CELLS.costOfDraft}, ${cost}, true);`,
  };
}

/**
 * Turns on the store of prompts in our kernels (wasm/kernels/prompt-store.h), within as many bytes as the engine was given.
 * With the stock WASM, nothing reads these cells.
 */
export function promptReusePatch({
  promptCacheBytes = 0,
  sharedContext,
}: Pick<EngineSettings, "promptCacheBytes" | "sharedContext">): TextPatch {
  return {
    purpose: "give the store of prompts its size",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setBigInt64(${MEMORY_CELLS.promptStoreBytes}, ${promptCacheBytes}n, true);
      getHeapU8()[${MEMORY_CELLS.sharedContext}] = ${sharedContext ? 1 : 0};`,
  };
}
