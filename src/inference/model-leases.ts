import { pause } from "../async/promises.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ModelLease, Models, Residency } from "../models/models.ts";
import type { AdmissionRequest } from "./admission-queue.ts";

/** Longest wait for memory: a preempted call ends within half a second, and unloading its model takes as long again. */
const MAX_WAIT_MS = 5000;
const POLL_INTERVAL_MS = 50;
/** Retry-After of low-priority requests: loading the model that preempted them takes seconds. */
const RETRY_AFTER_SECS = 5;

interface LeaseRequest extends Pick<AdmissionRequest, "onPreempt"> {
  readonly model?: string | undefined;
  readonly residency?: Residency | undefined;
}

/**
 * Leases models for requests, and preempts low-priority requests if another request needs the memory of their models.
 */
export class ModelLeases {
  readonly #models: Pick<Models, "acquire">;
  /** Functions that preempt the running low-priority requests. */
  readonly #preemptable = new Set<() => void>();
  /** Number of requests that wait for memory. */
  #waitingForMemory = 0;

  constructor(models: Pick<Models, "acquire">) {
    this.#models = models;
  }

  /** Leases a model until `resources` is disposed; until then, a low-priority request may be preempted. */
  async acquire(
    { model, residency, onPreempt }: LeaseRequest,
    signal: AbortSignal,
    resources: DisposableStack,
  ): Promise<ModelLease> {
    const lease = async (): Promise<ModelLease> =>
      resources.use(await this.#models.acquire(model || undefined, signal, residency));
    if (onPreempt) {
      if (this.#waitingForMemory > 0) throw noMemory();
      this.#preemptable.add(onPreempt);
      resources.defer(() => this.#preemptable.delete(onPreempt));
      return await lease();
    }
    try {
      return await lease();
    } catch (error) {
      if (this.#preemptable.size === 0 || !isOverloaded(error)) throw error;
      return await this.#leaseByPreempting(lease, signal);
    }
  }

  async #leaseByPreempting(lease: () => Promise<ModelLease>, signal: AbortSignal): Promise<ModelLease> {
    this.#waitingForMemory += 1;
    try {
      for (let waitedMs = 0; ; waitedMs += POLL_INTERVAL_MS) {
        for (const preempt of this.#preemptable) preempt();
        await pause(POLL_INTERVAL_MS, signal);
        try {
          return await lease();
        } catch (error) {
          if (waitedMs >= MAX_WAIT_MS || !isOverloaded(error)) throw error;
        }
      }
    } finally {
      this.#waitingForMemory -= 1;
    }
  }
}

function isOverloaded(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "overloaded";
}

function noMemory(): ServiceError {
  return new ServiceError("overloaded", "A request of higher priority needs the memory.", {
    retryAfterSecs: RETRY_AFTER_SECS,
  });
}
