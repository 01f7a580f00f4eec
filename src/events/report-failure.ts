import type { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "./service-events.ts";

/** Errors that have been reported by an event. */
const reported = new WeakSet<ServiceError>();

/**
 * Reports that a model could not be used, unless this error has already been reported: callers of a load report missing
 * models, and the layer below reports those that the engine refuses.
 */
export function reportFailure(events: Pick<ServiceEvents, "emit">, model: string, error: ServiceError): void {
  if (reported.has(error)) return;
  reported.add(error);
  events.emit({ type: "model-failed", model, code: error.code, message: error.message });
}
