import { toError } from "../errors/service-error.ts";
import type { AnswerMessage, FetchMessage } from "./worker-messages.ts";

interface ClientExchange {
  readonly head: PromiseWithResolvers<Response>;
  readonly stop: () => void;
  body: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Settles when the requested chunk has arrived. */
  pulled: PromiseWithResolvers<void> | undefined;
}

/** A `fetch` function that sends requests as messages. */
export class FetchClient {
  readonly #send: (message: FetchMessage) => void;
  readonly #exchanges = new Map<number, ClientExchange>();
  #lastId = 0;
  #endError: Error | undefined;

  constructor(send: (message: FetchMessage) => void) {
    this.#send = send;
  }

  /** Works like the global fetch. Only the path and the query of the URL count. */
  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input instanceof Request ? input : new URL(input, location.href), init);
    const { signal } = request;
    signal.throwIfAborted();
    const body = request.method === "GET" ? undefined : new Uint8Array(await request.arrayBuffer());
    if (this.#endError) throw this.#endError;
    signal.throwIfAborted();
    const id = ++this.#lastId;
    const onAbort = (): void => {
      this.#send({ type: "abort", id });
      this.#fail(id, signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const exchange: ClientExchange = {
      head: Promise.withResolvers(),
      stop: () => signal.removeEventListener("abort", onAbort),
      body: undefined,
      pulled: undefined,
    };
    this.#exchanges.set(id, exchange);
    const { pathname, search } = new URL(request.url);
    const head = { method: request.method, path: pathname + search, headers: [...request.headers] };
    this.#send({ type: "request", id, head, body });
    return await exchange.head.promise;
  };

  receive(message: AnswerMessage): void {
    const { id } = message;
    const exchange = this.#exchanges.get(id);
    if (!exchange) return;
    switch (message.type) {
      case "head": {
        const { status, headers } = message;
        const hasBody = status !== 204 && status !== 304;
        exchange.head.resolve(new Response(hasBody ? this.#bodyOf(id, exchange) : null, { status, headers }));
        return;
      }
      case "piece":
        exchange.body?.enqueue(message.bytes);
        exchange.pulled?.resolve();
        return;
      case "end":
        exchange.body?.close();
        this.#forget(id, exchange);
        return;
      case "failed":
        this.#fail(id, new TypeError(message.reason));
    }
  }

  /** Fails the requests in flight; later requests are still sent. */
  interrupt(error: Error): void {
    for (const id of this.#exchanges.keys()) this.#fail(id, error);
  }

  /** Fails the requests in flight and all later ones. */
  end(error: Error): void {
    this.#endError = error;
    this.interrupt(error);
  }

  #bodyOf(id: number, exchange: ClientExchange): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        start: (controller) => {
          exchange.body = controller;
        },
        pull: async () => {
          exchange.pulled = Promise.withResolvers();
          this.#send({ type: "pull", id });
          await exchange.pulled.promise;
        },
        cancel: () => {
          this.#send({ type: "abort", id });
          this.#forget(id, exchange);
        },
      },
      { highWaterMark: 1 },
    );
  }

  #fail(id: number, error: unknown): void {
    const exchange = this.#exchanges.get(id);
    if (!exchange) return;
    exchange.head.reject(error);
    exchange.body?.error(error);
    this.#forget(id, exchange);
  }

  #forget(id: number, exchange: ClientExchange): void {
    exchange.stop();
    exchange.pulled?.resolve();
    this.#exchanges.delete(id);
  }
}

/** Base of request URLs. The app uses only their paths. */
const BASE = "http://engine";

/** Request handler, such as the `fetch` of a Hono app. */
export type Serve = (
  request: Request,
  env: { readonly body: Uint8Array | undefined },
) => Response | Promise<Response>;

interface ServerExchange {
  readonly controller: AbortController;
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
}

/** Serves requests that arrive as messages. Sends the next chunk of a response when the client pulls it. */
export class FetchServer {
  readonly #serve: Serve;
  readonly #send: (message: AnswerMessage) => void;
  readonly #exchanges = new Map<number, ServerExchange>();

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
    const exchange: ServerExchange = { controller: new AbortController(), reader: undefined };
    this.#exchanges.set(id, exchange);
    try {
      const { signal } = exchange.controller;
      const { method, headers } = head;
      const request = new Request(BASE + head.path, { method, headers, signal });
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
