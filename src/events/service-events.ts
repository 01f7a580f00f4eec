import type { ServiceError } from "../errors/service-error.ts";

/** Events of GET /api/events. */
export type ServiceEvent =
  | { type: "model-downloaded"; model: string; size_bytes: number }
  | { type: "model-loaded"; model: string }
  | { type: "model-unloaded"; model: string; reason: "request" | "idle" | "memory" | "shutdown" }
  | { type: "model-failed"; model: string; code: string; message: string }
  | { type: "model-deleted"; model: string }
  | { type: "model-created"; model: string }
  | { type: "batch-created"; batch: string }
  | { type: "batch-ended"; batch: string; status: string; lines: number; failed: number }
  | { type: "engine-restarted"; model: string; reason: string }
  | { type: "gpu-lost"; model: string; reason: string }
  /** A model that was to use the GPU runs on the CPU. */
  | { type: "gpu-abandoned"; model: string; reason: string };

/** An event with its time, ISO 8601. */
export type TimedServiceEvent = ServiceEvent & { time: string };

/** Passes events from lower layers to subscribers, without a history. */
export class ServiceEvents {
  readonly #listeners = new Set<(event: TimedServiceEvent) => void>();

  emit(event: ServiceEvent): void {
    const timed = { ...event, time: new Date().toISOString() };
    for (const listener of Array.from(this.#listeners)) listener(timed);
  }

  /** Returns a function that ends the subscription. */
  subscribe(listener: (event: TimedServiceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Errors that an event has reported. */
const reported = new WeakSet<ServiceError>();

/**
 * Emits `model-failed`, unless this error has already been reported: callers of a load report missing models, and the
 * layer below reports models that the engine rejects.
 */
export function reportFailure(events: Pick<ServiceEvents, "emit">, model: string, error: ServiceError): void {
  if (reported.has(error)) return;
  reported.add(error);
  events.emit({ type: "model-failed", model, code: error.code, message: error.message });
}
