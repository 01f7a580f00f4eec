import type { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "./service-events.ts";

/** Errors that an event has told of. */
const reported = new WeakSet<ServiceError>();

/**
 * Reports that a model could not be used, unless this very error has been reported: whoever asks for a load tells of
 * the models that are not there, and the layer below of those that the engine refuses.
 */
export function reportFailure(events: Pick<ServiceEvents, "emit">, model: string, error: ServiceError): void {
  if (reported.has(error)) return;
  reported.add(error);
  events.emit({ type: "model-failed", model, code: error.code, message: error.message });
}
