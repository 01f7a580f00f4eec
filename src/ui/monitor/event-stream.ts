import { eventSchema } from "../../dialects/management/event-schema.ts";

/** A browser connects again by itself, but not after an answer that is no stream, such as that of a daemon that drains. */
const RETRY_MS = 3000;

/** Listens to /api/events until it is closed, connecting again whenever the stream breaks. */
export class EventStream {
  readonly #onEvent: () => void;
  readonly #onState: (isOpen: boolean) => void;
  #source: EventSource | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(onEvent: () => void, onState: (isOpen: boolean) => void) {
    this.#onEvent = onEvent;
    this.#onState = onState;
    this.#open();
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#onState(false);
  }

  #open(): void {
    const source = new EventSource("/api/events");
    this.#source = source;
    for (const type of eventSchema.shape.type.options) source.addEventListener(type, this.#onEvent);
    source.addEventListener("open", () => {
      this.#onState(true);
      // Something may have happened while nobody listened.
      this.#onEvent();
    });
    source.addEventListener("error", () => {
      this.#onState(false);
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#open(), RETRY_MS);
    });
  }
}
