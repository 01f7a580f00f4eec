import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";

/** Places in an array of int32 of what our kernels read of the steps of llama.cpp's server (wasm/kernels/steps.h). */
const STEP_TOKENS = MEMORY_CELLS.stepTokens / 4;
const LEAVE_STEP = MEMORY_CELLS.leaveStep / 4;

/** Initial limit while another request waits: few enough for the slowest machine. */
const FIRST_TOKENS = 16;

/** Others get their next token, and a newcomer its turn, after one step; a cancel among them waits for it as well. */
const SHARED_STEP_MS = 400;

/**
 * Longer steps read a prompt faster, since weights pass through the caches once for each step. A request that is alone
 * may leave its step when it is cancelled, so this is only what a second request would wait before it begins.
 */
const ALONE_STEP_MS = 2000;

/** However long they take: steps of 32 tokens read a prompt a tenth slower than the longest, steps of 16 a fifth. */
const ALONE_LEAST = 32;

/** A step that was slow for another reason must not make all others small, nor a quick one the next too long. */
const MOST_GROWTH = 2;

/** Our kernels multiply groups of so many tokens. */
const GROUP = 4;

/** How many tokens of a prompt the next step takes, by what the steps before took; and the end of a step before its time. */
export class StepControl {
  readonly #most: number;
  readonly #least: number;
  readonly #cells: () => Int32Array | undefined;
  #tokensPerMs: number | undefined;
  #tokens = 0;

  /**
   * @param most tokens of a step as llama.cpp was loaded, which it keeps to where nobody tells it fewer
   * @param slots of which each may put a token into every step
   * @param memory of the WASM, shared with the thread that computes; absent: steps are as loaded, and none is left
   */
  constructor(most: number, slots: number, memory: WebAssembly.Memory | undefined) {
    this.#most = most;
    this.#least = Math.min(most, Math.max(GROUP, slots));
    // The buffer is another one when the memory has grown.
    this.#cells = () => memory && new Int32Array(memory.buffer, 0, LEAVE_STEP + 1);
  }

  /**
   * Says how long the next step may be. Call it while nothing is computed.
   * @param isAlone one request is in the engine
   * @param isWhole a request cannot be split, as a text to be embedded
   * @param left tokens of the prompt that are still to be read, as far as is known: they are taken in steps of about the
   *   same size, since a short one at the end costs more than it reads
   */
  next(isAlone: boolean, isWhole: boolean, left = 0): void {
    const cells = this.#cells();
    if (!cells) return;
    if (isWhole) this.#tokens = this.#most;
    else if (isAlone) this.#tokens = this.#choose(ALONE_STEP_MS, ALONE_LEAST);
    else this.#tokens = this.#choose(SHARED_STEP_MS, this.#least);
    const even = left > 0 ? left / Math.ceil(left / this.#tokens) : this.#tokens;
    const tokens = Math.min(this.#tokens, Math.ceil(even / GROUP) * GROUP);
    Atomics.store(cells, STEP_TOKENS, tokens);
    Atomics.store(cells, LEAVE_STEP, 0);
  }

  /** What a step has read of a prompt, and in which time. */
  measured(tokens: number, ms: number): void {
    if (tokens > 0 && ms > 0) this.#tokensPerMs = tokens / ms;
  }

  /** Aborts the current step after its next operator. Only for a request that is alone in the engine. */
  leave(): void {
    const cells = this.#cells();
    if (cells) Atomics.store(cells, LEAVE_STEP, 1);
  }

  #choose(ms: number, least: number): number {
    const known = this.#tokensPerMs;
    if (known === undefined) return Math.min(this.#most, Math.max(this.#least, FIRST_TOKENS));
    const fitting = Math.min(known * ms, MOST_GROWTH * Math.max(this.#tokens, FIRST_TOKENS));
    return Math.min(this.#most, Math.max(least, Math.floor(fitting / GROUP) * GROUP));
  }
}
