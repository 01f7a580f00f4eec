import type { EngineCore } from "../core/engine-core.ts";
import type { LaterStep } from "../core/warm-up.ts";
import { EngineFatalError } from "../core/wllama-session.ts";

/** A request that has waited for the model comes sooner than this. */
const IDLE_MS = 250;

/** A prompt of so few tokens is read again as quickly as it is found. */
const FEW_TOKENS = 8;

interface IdleWarmUpOptions {
  /** Where slots share a context, a prompt can empty other slots. */
  readonly sharedContext: boolean;
  readonly onFatal: (reason: string) => void;
}

/**
 * Does the rest of the warm-up while an engine has no calls. A call goes first: what is being done is cancelled for it, and done
 * again later. No conversation loses its slot for it.
 */
export class IdleWarmUp {
  readonly #engine: Pick<EngineCore, "slots">;
  readonly #options: IdleWarmUpOptions;
  #steps: readonly LaterStep[];
  #calls = 0;
  #wasCalled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: { readonly controller: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(engine: Pick<EngineCore, "slots">, steps: readonly LaterStep[], options: IdleWarmUpOptions) {
    this.#engine = engine;
    this.#steps = steps;
    this.#options = options;
  }

  /** No call is in flight any more, or none has come yet. */
  begin(): void {
    if (this.#steps.length === 0 || this.#calls > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const controller = new AbortController();
      this.#running = { controller, ended: this.#run(controller.signal) };
    }, IDLE_MS);
  }

  /** A call comes; it may begin when this resolves. */
  async enter(): Promise<void> {
    this.#calls += 1;
    this.#wasCalled = true;
    clearTimeout(this.#timer);
    this.#running?.controller.abort();
    await this.#running?.ended;
  }

  /** A call has ended. */
  leave(): void {
    this.#calls -= 1;
    this.begin();
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      for (let step = this.#steps[0]; step && !signal.aborted; [step] = this.#steps) {
        const slot = this.#wasCalled ? await this.#spareSlot(signal) : undefined;
        if (this.#wasCalled && slot === undefined) this.#steps = [];
        else {
          await step({ signal, slot });
          this.#steps = this.#steps.slice(1);
        }
      }
    } catch (error) {
      // What a driver cannot compile now, requests will report when they need it.
      if (!signal.aborted) this.#steps = [];
      if (error instanceof EngineFatalError)
        this.#options.onFatal(error.message.split("\n", 1)[0] ?? "unknown");
    } finally {
      this.#running = undefined;
    }
  }

  /** A slot without a conversation. */
  async #spareSlot(signal: AbortSignal): Promise<number | undefined> {
    if (this.#options.sharedContext) return undefined;
    const result = await this.#engine.slots({ action: "list" }, signal);
    const slots = result.action === "list" ? result.slots : [];
    const spare = slots.findIndex(({ tokens, isBusy }) => !isBusy && tokens <= FEW_TOKENS);
    return spare < 0 ? undefined : spare;
  }
}
