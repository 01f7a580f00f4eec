import { request } from "../daemon-api.ts";

const RETRY_MS = 3000;

/** Listens to /api/events of the chosen daemon until it is closed, connecting again whenever the stream breaks. */
export class EventStream {
  readonly #onEvent: () => void;
  readonly #onState: (isOpen: boolean) => void;
  readonly #controller = new AbortController();

  constructor(onEvent: () => void, onState: (isOpen: boolean) => void) {
    this.#onEvent = onEvent;
    this.#onState = onState;
    void this.#listen();
  }

  close(): void {
    this.#controller.abort();
    this.#onState(false);
  }

  async #listen(): Promise<void> {
    const { signal } = this.#controller;
    while (!signal.aborted) {
      // The page says by itself that a daemon is away.
      await this.#read(signal).catch(() => undefined);
      if (signal.aborted) return;
      this.#onState(false);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** An EventSource could send no API key. */
  async #read(signal: AbortSignal): Promise<void> {
    const answer = await request("/api/events", { signal, headers: { accept: "text/event-stream" } });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return;
    this.#onState(true);
    // Something may have happened while nobody listened.
    this.#onEvent();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      // Heartbeats are comments.
      if (lines.some((line) => line.startsWith("event:"))) this.#onEvent();
    }
  }
}
