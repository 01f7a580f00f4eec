import type { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "./service-events.ts";

/**
 * Notes which failures of models are reported while it watches, so that whoever asked for a load reports the ones that
 * nobody has: a model that is not there, but not one that the engine refused. Dispose it when the work is done.
 */
export class FailureWatch implements Disposable {
  readonly #reported = new Set<string>();
  readonly #end: () => void;

  constructor(events: Pick<ServiceEvents, "subscribe">) {
    this.#end = events.subscribe((event) => {
      if (event.type === "model-failed") this.#reported.add(key(event));
    });
  }

  hasSeen(error: ServiceError): boolean {
    return this.#reported.has(key(error));
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}

function key({ code, message }: { readonly code: string; readonly message: string }): string {
  return `${code} ${message}`;
}
