import { abortable, Mutex } from "../../async/promises.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import type { CompletionChunk } from "./loop-request.ts";

/** Tokens that may exist beyond the counted ones: of the last result, of the current step and of the next step. */
const TOKENS_AHEAD = 3;

/**
 * Counts the tokens of running generations in a context that slots share. If the context becomes full, llama.cpp fails
 * all generations. The daemon ends generations before that happens, but may be late, so the engine checks it too.
 */
export class SharedContext {
  readonly #contextTokens: number;
  readonly steps: () => number;
  readonly #shares = new Set<ContextShare>();
  #nextLeave = Promise.withResolvers<void>();

  /**
   * @param steps returns the number of steps that the engine has begun. A step generates at most one token per
   *   generation, besides drafts, for which the kernels check the free space
   */
  constructor(contextTokens: number, steps: () => number) {
    this.#contextTokens = contextTokens;
    this.steps = steps;
  }

  get isEmpty(): boolean {
    return this.#shares.size === 0;
  }

  /**
   * Waits until the prompt fits, because a prompt that does not fit would fail all generations. Meanwhile others are
   * ended to free space. Dispose the share when the generation has left its slot.
   */
  async enter({ promptTokens, maxTokens, signal }: EnterOptions): Promise<ContextShare> {
    // llama.cpp rejects a prompt that exceeds the context, so no other generation has to end for it.
    const fitting = promptTokens < this.#contextTokens ? promptTokens : 0;
    const share = new ContextShare(this, fitting, maxTokens);
    this.#shares.add(share);
    try {
      while (this.exceedsContext()) await abortable(this.#nextLeave.promise, signal);
    } catch (error) {
      this.leave(share);
      throw error;
    }
    return share;
  }

  /**
   * True if generations may exceed the context. A single generation is ended by llama.cpp at the last token that fits.
   */
  exceedsContext(): boolean {
    return this.#shares.size > 1 && this.#used() > this.#contextTokens;
  }

  leave(share: ContextShare): void {
    if (!this.#shares.delete(share)) return;
    this.#nextLeave.resolve();
    this.#nextLeave = Promise.withResolvers();
  }

  #used(): number {
    let used = 0;
    for (const { reservedTokens } of this.#shares) used += reservedTokens;
    return used;
  }
}

interface EnterOptions {
  /** Estimate, which is corrected when llama.cpp reports the number; 0 if unknown. */
  readonly promptTokens: number;
  readonly maxTokens: number | undefined;
  readonly signal: AbortSignal;
}

/** The tokens of one generation in a shared context. */
export class ContextShare implements Disposable {
  readonly #context: SharedContext;
  readonly #maxTokens: number;
  #promptTokens: number;
  /** Last known number of tokens, and the number of steps at that time. */
  #lastCount: { readonly tokens: number; readonly steps: number } | undefined;

  constructor(context: SharedContext, promptTokens: number, maxTokens = Number.POSITIVE_INFINITY) {
    this.#context = context;
    this.#promptTokens = promptTokens;
    this.#maxTokens = maxTokens;
  }

  /**
   * Maximum tokens that the answer may have so far. Tokens that are a part of a character or of markup yield no result,
   * so steps are counted.
   */
  get tokens(): number {
    return this.#lastCount ? this.#lastCount.tokens + this.#context.steps() - this.#lastCount.steps : 0;
  }

  /** Maximum tokens that the generation may have before it can be ended. */
  get reservedTokens(): number {
    return this.#promptTokens + Math.min(this.tokens + TOKENS_AHEAD, this.#maxTokens);
  }

  /**
   * Updates the count from a result, which has the progress of the prompt or the number of answer tokens. Returns false
   * if the answer has to end because the context is full.
   */
  update(chunks: readonly CompletionChunk[]): boolean {
    const progress = chunks[0]?.prompt_progress;
    if (progress) {
      this.#promptTokens = progress.total;
      return true;
    }
    const reportedTokens = chunks.findLast(({ timings }) => timings)?.timings?.predicted_n;
    if (reportedTokens !== undefined || !this.#lastCount) {
      this.#lastCount = { tokens: reportedTokens ?? 1, steps: this.#context.steps() };
    }
    const exceedsContext = this.#context.exceedsContext();
    // This generation leaves its slot before the next step, so its tokens no longer count for the others.
    if (exceedsContext) this.#context.leave(this);
    return !exceedsContext;
  }

  [Symbol.dispose](): void {
    this.#context.leave(this);
  }
}

type OnEvent = (event: GenerationEvent) => void;

/** Schedules prompts: in a shared context one at a time, and only when they fit. */
export class PromptSchedule {
  readonly #prompts = new Mutex();
  readonly #context: SharedContext | undefined;
  readonly #count: (text: string, signal: AbortSignal) => Promise<number>;

  /**
   * @param context the context that slots share; absent: each slot has its own
   * @param count returns the number of tokens of a text
   */
  constructor(
    context: SharedContext | undefined,
    count: (text: string, signal: AbortSignal) => Promise<number>,
  ) {
    this.#context = context;
    this.#count = count;
  }

  /**
   * Runs a generation. In a shared context it waits until no other generation processes its prompt: llama.cpp frees
   * space for a prompt by clearing idle slots, but not the slot of a request that has not started yet. With two new
   * prompts at the same time, all requests could fail because the context is full.
   */
  async generate(
    run: (onEvent: OnEvent) => Promise<void>,
    onEvent: OnEvent,
    signal: AbortSignal,
  ): Promise<void> {
    if (!this.#context) return await run(onEvent);
    using lock = await this.#prompts.lock(signal);
    await run((event) => {
      if (isPromptDone(event)) lock[Symbol.dispose]();
      onEvent(event);
    });
  }

  /** Blocks other prompts until the lock is disposed. */
  lockPrompts(signal: AbortSignal): Promise<Disposable> {
    return this.#prompts.lock(signal);
  }

  /** Waits until a prompt fits into a shared context. Returns undefined if contexts are not shared. */
  async enter(
    prompt: string,
    maxTokens: number | undefined,
    signal: AbortSignal,
  ): Promise<ContextShare | undefined> {
    if (!this.#context) return undefined;
    const promptTokens = this.#context.isEmpty ? 0 : await this.#count(prompt, signal);
    return await this.#context.enter({ promptTokens, maxTokens, signal });
  }
}

function isPromptDone(event: GenerationEvent): boolean {
  return event.type === "prompt-progress" ? event.processed >= event.total : event.type !== "start";
}
