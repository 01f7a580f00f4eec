import type { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "./service-events.ts";

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
