import { toError } from "../errors/to-error.ts";
import type { AnswerMessage, FetchMessage } from "./worker-messages.ts";

interface Exchange {
  readonly head: PromiseWithResolvers<Response>;
  readonly stop: () => void;
  body: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Settles when the piece that was asked for last is there. */
  asked: PromiseWithResolvers<void> | undefined;
}

/** A `fetch` whose requests go out as messages. */
export class FetchClient {
  readonly #send: (message: FetchMessage) => void;
  readonly #exchanges = new Map<number, Exchange>();
  #lastId = 0;
  #endError: Error | undefined;

  constructor(send: (message: FetchMessage) => void) {
    this.#send = send;
  }

  /** As the global one; of the address only path and query count. */
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
    const exchange: Exchange = {
      head: Promise.withResolvers(),
      stop: () => signal.removeEventListener("abort", onAbort),
      body: undefined,
      asked: undefined,
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
        exchange.head.resolve(
          new Response(hasBody ? this.#bodyOf(id, exchange) : null, {
            status,
            headers: headers.map(([name, value]): [string, string] => [name, value]),
          }),
        );
        return;
      }
      case "piece":
        exchange.body?.enqueue(message.bytes);
        exchange.asked?.resolve();
        return;
      case "end":
        exchange.body?.close();
        this.#forget(id, exchange);
        return;
      case "failed":
        this.#fail(id, new TypeError(message.reason));
    }
  }

  /** Requests in flight will not be answered, but later ones will. */
  interrupt(error: Error): void {
    for (const id of this.#exchanges.keys()) this.#fail(id, error);
  }

  /** Nobody will answer any more. */
  end(error: Error): void {
    this.#endError = error;
    this.interrupt(error);
  }

  #bodyOf(id: number, exchange: Exchange): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        start: (controller) => {
          exchange.body = controller;
        },
        pull: async () => {
          exchange.asked = Promise.withResolvers();
          this.#send({ type: "pull", id });
          await exchange.asked.promise;
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

  #forget(id: number, exchange: Exchange): void {
    exchange.stop();
    exchange.asked?.resolve();
    this.#exchanges.delete(id);
  }
}

/** Any base will do: the app looks at the path. */
const BASE = "http://engine";

/** Answers a request, as the `fetch` of a Hono app does. */
export type Serve = (
  request: Request,
  env: { readonly body: Uint8Array | undefined },
) => Response | Promise<Response>;

interface ServeFetchExchange {
  readonly controller: AbortController;
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
}

/** Serves requests that come as messages; answers go out piece by piece, as fast as they are read. */
export class FetchServer {
  readonly #serve: Serve;
  readonly #send: (message: AnswerMessage) => void;
  readonly #exchanges = new Map<number, ServeFetchExchange>();

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
    const exchange: ServeFetchExchange = { controller: new AbortController(), reader: undefined };
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
