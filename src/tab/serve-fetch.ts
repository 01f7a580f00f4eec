import { toError } from "../errors/to-error.ts";
import type { AnswerMessage, FetchMessage } from "./fetch-messages.ts";

/** Any base will do: the app looks at the path. */
const BASE = "http://engine";

/** Answers a request, as the `fetch` of a Hono app does. */
export type Serve = (
  request: Request,
  env: { readonly body: Uint8Array | undefined },
) => Response | Promise<Response>;

interface Exchange {
  readonly controller: AbortController;
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
}

/** Serves requests that come as messages; answers go out piece by piece, as fast as they are read. */
export class FetchServer {
  readonly #serve: Serve;
  readonly #send: (message: AnswerMessage) => void;
  readonly #exchanges = new Map<number, Exchange>();

  constructor(serve: Serve, send: (message: AnswerMessage) => void) {
    this.#serve = serve;
    this.#send = send;
  }

  receive(message: FetchMessage): void {
    switch (message.type) {
      case "request":
        void this.#begin(message);
        return;
      case "pull":
        void this.#pull(message.id);
        return;
      case "abort":
        this.#exchanges.get(message.id)?.controller.abort(new DOMException("aborted", "AbortError"));
        this.#end(message.id);
    }
  }

  async #begin({ id, head, body }: Extract<FetchMessage, { type: "request" }>): Promise<void> {
    const exchange: Exchange = { controller: new AbortController(), reader: undefined };
    this.#exchanges.set(id, exchange);
    try {
      const { signal } = exchange.controller;
      const request = new Request(BASE + head.path, {
        method: head.method,
        headers: head.headers.map(([name, value]): [string, string] => [name, value]),
        signal,
      });
      const response = await this.#serve(request, { body });
      if (!this.#exchanges.has(id)) {
        await response.body?.cancel();
        return;
      }
      exchange.reader = response.body?.getReader();
      this.#send({ type: "head", id, status: response.status, headers: [...response.headers] });
      if (!exchange.reader) this.#finish({ type: "end", id });
    } catch (error) {
      this.#fail(id, error);
    }
  }

  async #pull(id: number): Promise<void> {
    try {
      const read = await this.#exchanges.get(id)?.reader?.read();
      if (read === undefined || !this.#exchanges.has(id)) return;
      if (read.done) this.#finish({ type: "end", id });
      else this.#send({ type: "piece", id, bytes: read.value });
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #fail(id: number, error: unknown): void {
    if (this.#exchanges.has(id)) this.#finish({ type: "failed", id, reason: toError(error).message });
  }

  #finish(message: AnswerMessage): void {
    this.#exchanges.delete(message.id);
    this.#send(message);
  }

  #end(id: number): void {
    const reader = this.#exchanges.get(id)?.reader;
    this.#exchanges.delete(id);
    reader?.cancel().catch(() => undefined);
  }
}
