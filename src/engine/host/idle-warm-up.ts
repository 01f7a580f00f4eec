import type { EngineCore } from "../core/engine-core.ts";
import type { DeferredStep } from "../core/warm-up.ts";
import { EngineFatalError } from "../core/wllama-session.ts";

/** Delay before idle work starts. Requests that waited for the load arrive sooner. */
const IDLE_MS = 250;

/** A slot with this many cached tokens or fewer counts as unused: reading them again costs nearly nothing. */
const MAX_UNUSED_SLOT_TOKENS = 8;

interface IdleWarmUpOptions {
  /** In a shared context, a prompt of the warm-up could evict other slots. */
  readonly sharedContext: boolean;
  readonly onFatal: (reason: string) => void;
}

/**
 * Runs the deferred steps of the warm-up while an engine has no calls. A call cancels the current step, which is
 * repeated later. Only unused slots are used, so that no conversation loses its KV cache.
 */
export class IdleWarmUp {
  readonly #engine: Pick<EngineCore, "slots">;
  readonly #options: IdleWarmUpOptions;
  #steps: readonly DeferredStep[];
  #calls = 0;
  #wasCalled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: { readonly controller: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(engine: Pick<EngineCore, "slots">, steps: readonly DeferredStep[], options: IdleWarmUpOptions) {
    this.#engine = engine;
    this.#steps = steps;
    this.#options = options;
  }

  /** Starts the next step after a delay, unless calls are in flight. */
  schedule(): void {
    if (this.#steps.length === 0 || this.#calls > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const controller = new AbortController();
      this.#running = { controller, ended: this.#run(controller.signal) };
    }, IDLE_MS);
  }

  /** Cancels the current step; resolves when the call may begin. */
  async callStarted(): Promise<void> {
    this.#calls += 1;
    this.#wasCalled = true;
    clearTimeout(this.#timer);
    this.#running?.controller.abort();
    await this.#running?.ended;
  }

  /** Continues the warm-up if no other call is in flight. */
  callEnded(): void {
    this.#calls -= 1;
    this.schedule();
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      for (let step = this.#steps[0]; step && !signal.aborted; [step] = this.#steps) {
        const slot = this.#wasCalled ? await this.#findUnusedSlot(signal) : undefined;
        if (this.#wasCalled && slot === undefined) this.#steps = [];
        else {
          await step({ signal, slot });
          this.#steps = this.#steps.slice(1);
        }
      }
    } catch (error) {
      // A shader that the driver cannot compile is reported by the request that needs it.
      if (!signal.aborted) this.#steps = [];
      if (error instanceof EngineFatalError)
        this.#options.onFatal(error.message.split("\n", 1)[0] ?? "unknown");
    } finally {
      this.#running = undefined;
    }
  }

  /** Returns the number of a slot without a conversation, if there is one. */
  async #findUnusedSlot(signal: AbortSignal): Promise<number | undefined> {
    if (this.#options.sharedContext) return undefined;
    const result = await this.#engine.slots({ action: "list" }, signal);
    const slots = result.action === "list" ? result.slots : [];
    const unused = slots.findIndex(({ tokens, isBusy }) => !isBusy && tokens <= MAX_UNUSED_SLOT_TOKENS);
    return unused < 0 ? undefined : unused;
  }
}
