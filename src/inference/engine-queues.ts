import { plainEnd } from "../engine/core/plain-reason.ts";
import type { Engine } from "../engine/engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import { AdmissionQueue } from "./admission-queue.ts";

/** What the engine of a model has to do. */
export interface ModelLoad {
  readonly model: string;
  /** Calls that have a slot. */
  readonly running: number;
  /** Of these, the ones in the background: they end when others need their slots. */
  readonly yielding: number;
  /** Calls that wait for one. */
  readonly waiting: number;
  /** Tokens of the KV cache, and the part of it, from 0 to 1, that running calls hold. */
  readonly contextTokens: number;
  readonly contextUsage: number;
}

/** One admission queue per running engine; it ends with its engine. */
export class EngineQueues {
  readonly #queues = new Map<Engine, { readonly alias: string; readonly queue: AdmissionQueue }>();
  readonly #maxWaiting: number;
  readonly #now: () => number;

  constructor(options: { maxWaiting: number; now: () => number }) {
    this.#maxWaiting = options.maxWaiting;
    this.#now = options.now;
  }

  /** @param alias name for the error of callers that wait when the engine ends */
  of(engine: Engine, alias: string): AdmissionQueue {
    const known = this.#queues.get(engine);
    if (known) return known.queue;
    const queue = new AdmissionQueue({
      slots: engine.spec.slots,
      contextTokens: engine.info.contextTokens,
      maxWaiting: this.#maxWaiting,
      now: this.#now,
    });
    this.#queues.set(engine, { alias, queue });
    void this.#endWith(engine, queue, alias);
    return queue;
  }

  async #endWith(engine: Engine, queue: AdmissionQueue, alias: string): Promise<void> {
    const { expected, reason } = await engine.exited;
    this.#queues.delete(engine);
    queue.close(() => exitError(alias, expected, reason));
  }

  /** Of the engines that have been called. */
  get loads(): readonly ModelLoad[] {
    return [...this.#queues].map(([{ info }, { alias, queue }]) => ({
      model: alias,
      running: queue.running,
      yielding: queue.yielding,
      waiting: queue.waiting,
      contextTokens: info.contextTokens,
      contextUsage: queue.contextUsage,
    }));
  }
}

function exitError(alias: string, expected: boolean, reason: string): ServiceError {
  return expected
    ? new ServiceError("model_not_loaded", `The model "${alias}" was unloaded while the request waited.`)
    : new ServiceError(
        "engine_crashed",
        `The engine of "${alias}" ended while the request waited (${plainEnd(reason)}); the next request starts it again.`,
      );
}
