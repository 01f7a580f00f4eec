import { plainEnd } from "../engine/core/plain-reason.ts";
import type { Engine } from "../engine/engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import { AdmissionQueue } from "./admission-queue.ts";

/** One admission queue per running engine; it ends with its engine. */
export class EngineQueues {
  readonly #queues = new WeakMap<Engine, AdmissionQueue>();
  readonly #maxWaiting: number;
  readonly #now: () => number;

  constructor(options: { maxWaiting: number; now: () => number }) {
    this.#maxWaiting = options.maxWaiting;
    this.#now = options.now;
  }

  /** @param alias name for the error of callers that wait when the engine ends */
  of(engine: Engine, alias: string): AdmissionQueue {
    const known = this.#queues.get(engine);
    if (known) return known;
    const queue = new AdmissionQueue({
      slots: engine.spec.slots,
      contextTokens: engine.info.contextTokens,
      maxWaiting: this.#maxWaiting,
      now: this.#now,
    });
    this.#queues.set(engine, queue);
    void engine.exited.then((exit) => queue.close(() => exitError(alias, exit.expected, exit.reason)));
    return queue;
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
