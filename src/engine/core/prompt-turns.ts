import type { GenerationEvent } from "../protocol/generation.ts";

/**
 * Has the prompts of requests computed one after another. Where slots share a context, llama.cpp makes room for a
 * prompt by forgetting what idle slots hold, but not what a slot holds whose request has yet to begin: a prompt beside
 * one that waits could find no room, and all requests would fail.
 */
export class PromptTurns {
  #last: Promise<void> = Promise.resolve();

  /** Begins a generation when it is its turn; the next one's comes with the end of its prompt. */
  async *take(
    begin: () => AsyncGenerator<GenerationEvent, void, undefined>,
    signal: AbortSignal,
  ): AsyncGenerator<GenerationEvent, void, undefined> {
    const end = await this.#next(signal);
    try {
      for await (const event of begin()) {
        if (isBehindPrompt(event)) end();
        yield event;
      }
    } finally {
      end();
    }
  }

  /** Makes a call when it is its turn; the next one's comes with the end of the call. */
  async alone<Result>(call: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const end = await this.#next(signal);
    try {
      return await call();
    } finally {
      end();
    }
  }

  /** Waits for a turn, and returns how to end it. */
  async #next(signal: AbortSignal): Promise<() => void> {
    const turn = Promise.withResolvers<void>();
    const before = this.#last;
    this.#last = before.then(() => turn.promise);
    try {
      await unlessAborted(before, signal);
    } catch (error) {
      turn.resolve();
      throw error;
    }
    return turn.resolve;
  }
}

function isBehindPrompt(event: GenerationEvent): boolean {
  return event.type === "prompt-progress" ? event.processed >= event.total : event.type !== "start";
}

/** Throws the signal's reason when it aborts first. */
async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
