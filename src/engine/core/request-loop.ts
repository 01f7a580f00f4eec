import type { ActionResult, WorkerActions } from "./wllama-api.ts";
import { EngineCallError, type WllamaSession } from "./wllama-session.ts";

/**
 * How many results in a row may be unreadable before a request is given up. Text that is not UTF-8 makes
 * llama.cpp throw while it writes a result: that piece is lost, and what follows is usually fine.
 */
const MAX_UNREADABLE_RESULTS = 100;

/** A result as llama.cpp's server would send it. */
export type RequestResult =
  | { readonly kind: "data"; readonly data: unknown }
  | { readonly kind: "error"; readonly data: unknown }
  /** The request was accepted; nothing is computed yet. */
  | { readonly kind: "accepted" }
  /** A piece was lost because its text was not UTF-8. */
  | { readonly kind: "unreadable" };

type StartAction = "completion" | "embedding" | "rerank";

class Reader {
  readonly id: number;
  readonly results: RequestResult[] = [];
  finished = false;
  failure: unknown;
  unreadable = 0;
  #wake: () => void = () => {};

  constructor(id: number) {
    this.id = id;
  }

  notify(): void {
    this.#wake();
  }

  /** Waits for a result, the end, or the signal. */
  async change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    await promise;
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Drives all requests of one engine. llama.cpp computes only while it is polled, one step of all slots for each
 * poll, and its worker handles one call at a time: so there is one loop, which polls the requests in turn and
 * lets cancellations and new requests go first. A cancel therefore waits for one step at most.
 *
 * The caller keeps to the number of slots: a request beyond it would never be answered.
 */
export class RequestLoop {
  readonly #session: Pick<WllamaSession, "act">;
  readonly #urgent: (() => Promise<void>)[] = [];
  readonly #readers: Reader[] = [];
  #running = false;

  constructor(session: Pick<WllamaSession, "act">) {
    this.#session = session;
  }

  /**
   * Starts a request and yields its results until the last one. Leaving early, or aborting, cancels it; the slot
   * is free when the iterator has returned or thrown.
   * @throws EngineCallError when llama.cpp refuses the request, EngineFatalError when the engine is lost, the
   *   signal's reason when aborted
   */
  async *run<Action extends StartAction>(
    action: Action,
    body: WorkerActions[Action],
    signal: AbortSignal,
  ): AsyncGenerator<RequestResult, void, undefined> {
    signal.throwIfAborted();
    const { req_id: id } = await this.#first(() => this.#session.act(action, body));
    const reader = new Reader(id ?? 0);
    this.#readers.push(reader);
    this.#start();
    try {
      for (;;) {
        signal.throwIfAborted();
        const result = reader.results.shift();
        if (result) yield result;
        else if (reader.failure !== undefined) throw reader.failure as Error;
        else if (reader.finished) return;
        else await reader.change(signal);
      }
    } finally {
      await this.#leave(reader);
    }
  }

  /** Runs a call before the next poll. */
  #first<Result>(call: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#urgent.push(() => call().then(resolve, reject));
      this.#start();
    });
  }

  async #leave(reader: Reader): Promise<void> {
    const at = this.#readers.indexOf(reader);
    if (at < 0) return;
    this.#readers.splice(at, 1);
    await this.#first(() => this.#session.act("cancel", { _name: "cncl_req", req_id: reader.id })).catch(
      () => {}, // the engine is lost: there is no slot left to free
    );
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#drive();
  }

  async #drive(): Promise<void> {
    for (;;) {
      const call = this.#urgent.shift();
      if (call) {
        await call();
        continue;
      }
      const reader = this.#readers.shift();
      if (!reader) break;
      this.#readers.push(reader); // to the end of the queue: all are polled in turn
      await this.#poll(reader);
    }
    this.#running = false;
  }

  async #poll(reader: Reader): Promise<void> {
    try {
      const result = await this.#session.act("get_result", { _name: "gres_req", req_id: reader.id });
      reader.unreadable = 0;
      this.#deliver(reader, result);
    } catch (error) {
      reader.unreadable += 1;
      if (error instanceof EngineCallError && reader.unreadable <= MAX_UNREADABLE_RESULTS) {
        reader.results.push({ kind: "unreadable" });
      } else {
        reader.failure = error;
        if (!(error instanceof EngineCallError)) this.#remove(reader);
      }
    }
    reader.notify();
  }

  #deliver(reader: Reader, { data_json: json, is_error: isError, has_more: hasMore }: ActionResult): void {
    if (json === "null") reader.results.push({ kind: "accepted" });
    else if (json)
      reader.results.push({ kind: isError ? "error" : "data", data: JSON.parse(json) as unknown });
    if (hasMore) return;
    reader.finished = true;
    this.#remove(reader);
  }

  /** The engine has forgotten this request: nothing to poll, nothing to cancel. */
  #remove(reader: Reader): void {
    const at = this.#readers.indexOf(reader);
    if (at >= 0) this.#readers.splice(at, 1);
  }
}
