import { ServiceError } from "../errors/service-error.ts";
import type { ModelLease, Models, Residency } from "../models/models.ts";
import type { AdmissionRequest } from "./admission-queue.ts";

/** A call ends within a step of its engine, and half a second at most; unloading a model takes as long again. */
const LONGEST_WAIT_MS = 5000;
const LOOK_MS = 50;
/** When requests in the background may come back: the load that they made room for takes seconds. */
const RETRY_AFTER_SECS = 5;

interface LeaseRequest extends Pick<AdmissionRequest, "onYield"> {
  readonly model?: string | undefined;
  readonly residency?: Residency | undefined;
}

/** Leases models for requests; those in the background give way where another one needs the memory of theirs. */
export class ModelLeases {
  readonly #models: Pick<Models, "acquire">;
  /** Of all requests in the background. */
  readonly #yielding = new Set<() => void>();
  /** Requests that wait for memory. */
  #wanting = 0;

  constructor(models: Pick<Models, "acquire">) {
    this.#models = models;
  }

  /** The lease is held, and a request in the background asked to end, until `held` is disposed. */
  async acquire(
    { model, residency, onYield }: LeaseRequest,
    signal: AbortSignal,
    held: DisposableStack,
  ): Promise<ModelLease> {
    const lease = async (): Promise<ModelLease> =>
      held.use(await this.#models.acquire(model || undefined, signal, residency));
    if (onYield) {
      if (this.#wanting > 0) throw noMemory();
      this.#yielding.add(onYield);
      held.defer(() => this.#yielding.delete(onYield));
      return await lease();
    }
    try {
      return await lease();
    } catch (error) {
      if (this.#yielding.size === 0 || !isOverloaded(error)) throw error;
      return await this.#leaseInstead(lease, signal);
    }
  }

  async #leaseInstead(lease: () => Promise<ModelLease>, signal: AbortSignal): Promise<ModelLease> {
    this.#wanting += 1;
    try {
      for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
        for (const giveWay of this.#yielding) giveWay();
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        signal.throwIfAborted();
        try {
          return await lease();
        } catch (error) {
          if (waitedMs >= LONGEST_WAIT_MS || !isOverloaded(error)) throw error;
        }
      }
    } finally {
      this.#wanting -= 1;
    }
  }
}

function isOverloaded(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "overloaded";
}

function noMemory(): ServiceError {
  return new ServiceError("overloaded", "A request that is not in the background needs the memory.", {
    retryAfterSecs: RETRY_AFTER_SECS,
  });
}
