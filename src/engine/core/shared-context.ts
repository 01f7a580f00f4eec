import { abortable, Mutex } from "../../async/promises.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import type { CompletionChunk } from "./loop-request.ts";

/** Tokens beyond those that are known: a result is up to one step late, one step is being computed, and one comes next. */
const STEPS_AHEAD = 3;

/**
 * The tokens of running generations in a context that their slots share. The daemon gives each its part and ends those that
 * have used theirs, but it may be late. A context that is full is an error for all who run, so the last check is here.
 */
export class SharedContext {
  readonly #contextTokens: number;
  readonly #steps: () => number;
  readonly #shares = new Set<ContextShare>();
  #nextLeave = Promise.withResolvers<void>();

  /**
   * @param steps how many the engine has begun; each gives a generation at most one token, and guesses, for which the kernels
   *   see that there is room
   */
  constructor(contextTokens: number, steps: () => number) {
    this.#contextTokens = contextTokens;
    this.#steps = steps;
  }

  /** True when no generation has a share. */
  get isEmpty(): boolean {
    return this.#shares.size === 0;
  }

  /**
   * Resolves when there is room for the prompt: one that is read while it does not fit is an error for all. Others end to
   * make that room. Dispose the share when its generation has left its slot.
   */
  async enter({ promptTokens, maxTokens, signal }: Entrance): Promise<ContextShare> {
    const share = new ContextShare({
      // The engine refuses one that does not fit alone, and nobody has to end for that.
      promptTokens: promptTokens < this.#contextTokens ? promptTokens : 0,
      maxTokens: maxTokens ?? Number.POSITIVE_INFINITY,
      steps: this.#steps,
      isOver: () => this.#isOver(),
      leave: () => this.#leave(share),
    });
    this.#shares.add(share);
    try {
      while (this.#isOver()) await abortable(this.#nextLeave.promise, signal);
    } catch (error) {
      this.#leave(share);
      throw error;
    }
    return share;
  }

  /** One that is alone ends by llama.cpp's own limit, with the last token that fits. */
  #isOver(): boolean {
    return this.#shares.size > 1 && this.#used() > this.#contextTokens;
  }

  #leave(share: ContextShare): void {
    if (!this.#shares.delete(share)) return;
    this.#nextLeave.resolve();
    this.#nextLeave = Promise.withResolvers();
  }

  #used(): number {
    let used = 0;
    for (const { claim } of this.#shares) used += claim;
    return used;
  }
}

interface Entrance {
  /** As far as it is known; corrected when the engine has counted it. */
  readonly promptTokens: number;
  readonly maxTokens: number | undefined;
  readonly signal: AbortSignal;
}

interface RoomShareOptions {
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly steps: () => number;
  readonly isOver: () => boolean;
  readonly leave: () => void;
}

/** What one generation uses. */
export class ContextShare implements Disposable {
  readonly #options: RoomShareOptions;
  #promptTokens: number;
  /** The last number that is known, and the steps at that time. */
  #known: { readonly tokens: number; readonly steps: number } | undefined;

  constructor(options: RoomShareOptions) {
    this.#options = options;
    this.#promptTokens = options.promptTokens;
  }

  /** Most tokens that the answer may have so far. Those that are part of a character or of markup come without a result. */
  get tokens(): number {
    return this.#known ? this.#known.tokens + this.#options.steps() - this.#known.steps : 0;
  }

  /** Most tokens that it may have before it can be ended. */
  get claim(): number {
    return this.#promptTokens + Math.min(this.tokens + STEPS_AHEAD, this.#options.maxTokens);
  }

  /**
   * Reads a result: progress of the prompt, or of the answer, which tells the number of its tokens unless it is empty.
   * Returns false when the answer has to end for lack of room.
   */
  take(chunks: readonly CompletionChunk[]): boolean {
    const progress = chunks[0]?.prompt_progress;
    if (progress) {
      this.#promptTokens = progress.total;
      return true;
    }
    const exact = chunks.findLast(({ timings }) => timings)?.timings?.predicted_n;
    if (exact !== undefined || !this.#known) {
      this.#known = { tokens: exact ?? 1, steps: this.#options.steps() };
    }
    const isOver = this.#options.isOver();
    // It leaves its slot before the next step, so that the others need not end with it.
    if (isOver) this.#options.leave();
    return !isOver;
  }

  [Symbol.dispose](): void {
    this.#options.leave();
  }
}

type OnEvent = (event: GenerationEvent) => void;

/** Prompts that wait for each other, and for room where slots share a context. */
export class PromptSchedule {
  readonly #prompts = new Mutex();
  readonly #room: SharedContext | undefined;
  readonly #count: (text: string, signal: AbortSignal) => Promise<number>;

  /**
   * @param room of a context that slots share
   * @param count tells how many tokens a text has
   */
  constructor(
    room: SharedContext | undefined,
    count: (text: string, signal: AbortSignal) => Promise<number>,
  ) {
    this.#room = room;
    this.#count = count;
  }

  /**
   * Runs a generation, where slots share a context only when no other reads its prompt: llama.cpp makes room for a prompt by
   * clearing idle slots, but not a slot whose request has not started yet, so with two new prompts at the same time, all requests
   * could fail for lack of room.
   */
  async generate(
    run: (onEvent: OnEvent) => Promise<void>,
    onEvent: OnEvent,
    signal: AbortSignal,
  ): Promise<void> {
    if (!this.#room) return await run(onEvent);
    using lock = await this.#prompts.lock(signal);
    await run((event) => {
      if (isPromptDone(event)) lock[Symbol.dispose]();
      onEvent(event);
    });
  }

  /** Keeps other prompts from being read until this is disposed of. */
  alone(signal: AbortSignal): Promise<Disposable> {
    return this.#prompts.lock(signal);
  }

  /** Waits for room in a context that slots share. */
  async enter(
    prompt: string,
    maxTokens: number | undefined,
    signal: AbortSignal,
  ): Promise<ContextShare | undefined> {
    if (!this.#room) return undefined;
    const promptTokens = this.#room.isEmpty ? 0 : await this.#count(prompt, signal);
    return await this.#room.enter({ promptTokens, maxTokens, signal });
  }
}

/** True for events after the whole prompt has been read. */
function isPromptDone(event: GenerationEvent): boolean {
  return event.type === "prompt-progress" ? event.processed >= event.total : event.type !== "start";
}
