import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { EngineSettings } from "./load-parameters.ts";
import type { BlobLike } from "./platform.ts";
import type { TextPatch } from "./worker-patches.ts";

/** Indices in an Int32Array of the cells with which our kernels control steps (wasm/kernels/steps.h). */
const STEP_TOKENS_CELL = MEMORY_CELLS.stepTokens / 4;
const ABORT_STEP_CELL = MEMORY_CELLS.leaveStep / 4;
const DRAFT_TOKENS_CELL = MEMORY_CELLS.guessedTokens / 4;

/** Tokens of the first step, few enough for the slowest machine. */
const FIRST_STEP_TOKENS = 16;

/**
 * Target duration of a step while several requests run. Other slots, new requests and cancellations wait for a step.
 */
const SHARED_STEP_MS = 400;

/**
 * Target duration of a step of a single request. Longer steps process a prompt faster, because every step reads all
 * weights. The step of a single request can be aborted, so only a second request would have to wait.
 */
const SINGLE_REQUEST_STEP_MS = 2000;

/** Minimum tokens of a step of a single request; smaller steps would make prompts slower. */
const MIN_SINGLE_REQUEST_TOKENS = 32;

/** Maximum growth from one step to the next, in case the last one was unusually fast. */
const MAX_GROWTH = 2;

/** Tokens that our kernels multiply together. */
const TOKEN_GROUP = 4;

/** Chooses the size of each step from the duration of earlier ones, and aborts steps. */
export class StepControl {
  readonly #max: number;
  readonly #min: number;
  readonly #cells: () => Int32Array | undefined;
  #tokensPerMs: number | undefined;
  #tokens = 0;

  /**
   * @param max batch size with which llama.cpp was loaded, in tokens
   * @param slots number of slots, each of which may have a token in every step
   * @param memory memory of the WASM, shared with the thread that computes; absent: all steps have `max` tokens and
   *   cannot be aborted
   */
  constructor(max: number, slots: number, memory: WebAssembly.Memory | undefined) {
    this.#max = max;
    this.#min = Math.min(max, Math.max(TOKEN_GROUP, slots));
    // The buffer is replaced when the memory grows.
    this.#cells = () => memory && new Int32Array(memory.buffer, 0, DRAFT_TOKENS_CELL + 1);
  }

  /**
   * Sets the size of the next step. Call it between steps.
   * @param isOnlyRequest true if there is only one request
   * @param isUnsplittable true if a request must be processed in one step, such as a text to embed
   * @param remainingTokens prompt tokens that are left to process, or 0 if unknown. They are divided evenly, because a
   *   short last step would take almost as long as a full one
   */
  prepareStep(isOnlyRequest: boolean, isUnsplittable: boolean, remainingTokens = 0): void {
    const cells = this.#cells();
    if (!cells) return;
    if (isUnsplittable) this.#tokens = this.#max;
    else if (isOnlyRequest)
      this.#tokens = this.#tokensWithin(SINGLE_REQUEST_STEP_MS, MIN_SINGLE_REQUEST_TOKENS);
    else this.#tokens = this.#tokensWithin(SHARED_STEP_MS, this.#min);
    const evenTokens =
      remainingTokens > 0 ? remainingTokens / Math.ceil(remainingTokens / this.#tokens) : this.#tokens;
    const tokens = Math.min(this.#tokens, Math.ceil(evenTokens / TOKEN_GROUP) * TOKEN_GROUP);
    Atomics.store(cells, STEP_TOKENS_CELL, tokens);
    Atomics.store(cells, ABORT_STEP_CELL, 0);
  }

  /** Records the number of prompt tokens that a step has processed, and its duration. */
  recordStep(tokens: number, ms: number): void {
    if (tokens > 0 && ms > 0) this.#tokensPerMs = tokens / ms;
  }

  /** Number of draft tokens in the last step, of which the model may have accepted some. */
  get draftTokens(): number {
    const cells = this.#cells();
    return cells ? Atomics.load(cells, DRAFT_TOKENS_CELL) : 0;
  }

  /** Aborts the current step after its current operator. Only for a single request. */
  abortStep(): void {
    const cells = this.#cells();
    if (cells) Atomics.store(cells, ABORT_STEP_CELL, 1);
  }

  #tokensWithin(ms: number, minTokens: number): number {
    const tokensPerMs = this.#tokensPerMs;
    if (tokensPerMs === undefined) return Math.min(this.#max, Math.max(this.#min, FIRST_STEP_TOKENS));
    const fitting = Math.min(tokensPerMs * ms, MAX_GROWTH * Math.max(this.#tokens, FIRST_STEP_TOKENS));
    return Math.min(this.#max, Math.max(minTokens, Math.floor(fitting / TOKEN_GROUP) * TOKEN_GROUP));
  }
}

/** Maximum cost; drafts are useless at this cost anyway. */
const MAX_DRAFT_COST = 1000;

/**
 * Sets the initial cost of a draft model's step, in percent of a step of the model, until our kernels have measured it
 * (wasm/kernels/step-costs.h). A step of one token reads all weights, so the cost is estimated from the file sizes. The
 * estimate is too low for a mixture of experts, which reads only a part of its weights.
 */
export function draftCostPatch(model: readonly BlobLike[], draft: BlobLike): TextPatch {
  const bytes = model.reduce((sum, { size }) => sum + size, 0);
  const cost = Math.min(MAX_DRAFT_COST, Math.ceil((100 * draft.size) / bytes));
  return {
    purpose: "set the cost of a step of the draft model",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setFloat32(${MEMORY_CELLS.costOfDraft}, ${cost}, true);`,
  };
}

/**
 * Sets the size of our kernels' prompt cache (wasm/kernels/prompt-store.h). The stock WASM ignores these cells.
 */
export function promptReusePatch({
  promptCacheBytes = 0,
  sharedContext,
}: Pick<EngineSettings, "promptCacheBytes" | "sharedContext">): TextPatch {
  return {
    purpose: "set the size of the prompt cache",
    find: "if (argAction === 'load') {",
    replace: `if (argAction === 'load') {
      new DataView(getHeapU8().buffer).setBigInt64(${MEMORY_CELLS.promptStoreBytes}, ${promptCacheBytes}n, true);
      getHeapU8()[${MEMORY_CELLS.sharedContext}] = ${sharedContext ? 1 : 0};`,
  };
}
