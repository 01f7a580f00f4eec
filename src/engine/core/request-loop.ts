import { z } from "zod";
import { toError } from "../../errors/to-error.ts";
import type { StepControl } from "./step-control.ts";
import type { ActionResult, WorkerActions } from "./wllama-api.ts";
import { EngineCallError, type WllamaSession } from "./wllama-session.ts";

/**
 * What llama.cpp throws while it writes a result that is not UTF-8: that piece is lost, and what follows is usually fine.
 * The result has been counted by then. One that cannot be read for another reason has not, and llama.cpp would promise a
 * further one for ever: so no other exception may be polled past.
 */
const LOST_PIECE =
  /^\[json\.exception\.type_error\.316\] (invalid UTF-8 byte at index \d+|incomplete UTF-8 string; last byte): 0x[\dA-F]{2}$/;

/** The exception is the last that a call logs; what a model has written never is a line of its own there. */
function isLostPiece({ message }: EngineCallError): boolean {
  return LOST_PIECE.test(message.trimEnd().split("\n").at(-1) ?? "");
}

/** A result as llama.cpp's server would send it. */
export type RequestResult =
  | { readonly kind: "data"; readonly data: unknown }
  | { readonly kind: "error"; readonly data: unknown }
  /** The request was accepted; nothing is computed yet. */
  | { readonly kind: "accepted" }
  /** A piece was lost because its text was not UTF-8. */
  | { readonly kind: "unreadable" };

type StartAction = "completion" | "embedding" | "rerank";

/**
 * What a request brings: a text that is read in steps; one that is computed in one step, however long; or a text with pictures,
 * whose time is not that of tokens, and in whose computation none of it is left.
 */
type InputKind = "text" | "whole text" | "pictures";

function inputKind(action: StartAction, body: WorkerActions[StartAction]): InputKind {
  if (action !== "completion") return "whole text";
  return "files" in body && body.files.length > 0 ? "pictures" : "text";
}

class Reader {
  readonly id: number;
  readonly kind: InputKind;
  readonly results: RequestResult[] = [];
  /** Tokens of its prompt that have been read; undefined when all have, and an answer comes. */
  promptTokens: number | undefined = 0;
  /** Tokens of its prompt that are still to be read, as far as is known. */
  tokensLeft = 0;
  finished = false;
  failure: Error | undefined;
  #wake: () => void = () => {};

  constructor(id: number, kind: InputKind) {
    this.id = id;
    this.kind = kind;
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

const progressSchema = z.object({
  prompt_progress: z.object({ processed: z.int(), total: z.int(), cache: z.int().default(0) }),
});

/** What comes beside a token, in the same step: how far the prompt has been read. */
function progressOf(data: unknown): z.infer<typeof progressSchema>["prompt_progress"] | undefined {
  return progressSchema.safeParse(Array.isArray(data) ? (data as unknown[])[0] : data).data?.prompt_progress;
}

/**
 * Drives all requests of one engine. llama.cpp computes only while it is polled, and its worker handles one call at
 * a time: so there is one loop, which polls the requests in turn and lets cancellations and new requests go first.
 * A cancel therefore waits for one step at most, and of a request that is alone not even for that: its step is left.
 *
 * A step gives a token to every slot, but a poll returns one result of one request. So the first poll of a round
 * computes, and the others are held: they collect. With the stock WASM, which computes at every poll, results pile
 * up while several requests run, and each is delivered the later the more of them there are.
 *
 * The caller keeps to the number of slots: a request beyond it would never be answered.
 */
export class RequestLoop {
  readonly #session: Pick<WllamaSession, "act">;
  readonly #steps: Pick<StepControl, "next" | "measured" | "leave"> | undefined;
  readonly #urgent: (() => Promise<void>)[] = [];
  readonly #asides: (() => Promise<void>)[] = [];
  readonly #readers: Reader[] = [];
  #running = false;
  /** The reader for which alone a step is being computed. */
  #alone: Reader | undefined;
  /** How long the last step took, of which several results may come. */
  #stepMs = 0;

  /** @param steps how long steps are; absent: as llama.cpp was loaded */
  constructor(session: Pick<WllamaSession, "act">, steps?: Pick<StepControl, "next" | "measured" | "leave">) {
    this.#session = session;
    this.#steps = steps;
  }

  /**
   * Starts a request and yields its results until the last one. Leaving early, or aborting, cancels it; the slot
   * is free when the iterator has returned or thrown.
   * @throws EngineCallError when llama.cpp refuses the request or cannot read its own answer, EngineFatalError when the engine is lost, the
   *   signal's reason when aborted
   */
  async *run<Action extends StartAction>(
    action: Action,
    body: WorkerActions[Action],
    signal: AbortSignal,
  ): AsyncGenerator<RequestResult, void, undefined> {
    signal.throwIfAborted();
    const { req_id: id } = await this.#first(() => this.#session.act(action, body));
    const reader = new Reader(id ?? 0, inputKind(action, body));
    this.#readers.push(reader);
    this.#start();
    try {
      for (;;) {
        signal.throwIfAborted();
        const result = reader.results.shift();
        if (result) yield result;
        else if (reader.failure !== undefined) throw reader.failure;
        else if (reader.finished) return;
        else await reader.change(signal);
      }
    } finally {
      await this.#leave(reader);
    }
  }

  /**
   * Runs a call that needs no slot. At most one between two polls, so that however many there are, those who generate
   * wait for one at a time.
   */
  aside<Result>(call: () => Promise<Result>): Promise<Result> {
    return this.#queue(this.#asides, call);
  }

  /** Runs a call before the next poll. */
  #first<Result>(call: () => Promise<Result>): Promise<Result> {
    return this.#queue(this.#urgent, call);
  }

  /** What a call throws, at once or later, is its caller's: the loop is everybody's. */
  #queue<Result>(calls: (() => Promise<void>)[], call: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      calls.push(async () => {
        try {
          resolve(await call());
        } catch (error) {
          reject(toError(error));
        }
      });
      this.#start();
    });
  }

  async #leave(reader: Reader): Promise<void> {
    const at = this.#readers.indexOf(reader);
    if (at < 0) return;
    this.#readers.splice(at, 1);
    // Of an answer that has begun a step is a token; and what cannot forget a token would lose the whole prompt.
    if (this.#alone === reader && reader.kind === "text" && reader.promptTokens !== undefined)
      this.#steps?.leave();
    await this.#cancel(reader).catch(() => {}); // the engine is lost: there is no slot left to free
  }

  /** Frees a slot; the others need not compute for that. */
  async #cancel(reader: Reader): Promise<void> {
    await this.#first(() => this.#session.act("cancel", { _name: "cncl_req", req_id: reader.id }, true));
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#drive();
  }

  async #drive(): Promise<void> {
    /** How many readers have yet to collect what the last step gave. */
    let uncollected = 0;
    let sameAgain: Reader | undefined;
    for (;;) {
      const call = this.#urgent.shift();
      if (call) {
        await call();
        continue;
      }
      const aside = this.#asides.shift();
      if (aside) await aside();
      const reader: Reader | undefined = sameAgain ?? this.#nextReader();
      if (!reader) {
        if (this.#asides.length + this.#urgent.length > 0) continue;
        break;
      }
      const isHeld = sameAgain !== undefined || uncollected > 0;
      if (!sameAgain) uncollected = uncollected > 0 ? uncollected - 1 : this.#readers.length - 1;
      const hasMore = await this.#poll(reader, isHeld);
      sameAgain = hasMore && this.#readers.includes(reader) ? reader : undefined;
    }
    this.#running = false;
  }

  /** Goes round: each reader's turn comes after all others'. */
  #nextReader(): Reader | undefined {
    const reader = this.#readers.shift();
    if (reader) this.#readers.push(reader);
    return reader;
  }

  /** @returns true when the same step may have given the reader something more */
  async #poll(reader: Reader, isHeld: boolean): Promise<boolean> {
    let hasMore = false;
    const startMs = performance.now();
    if (!isHeld) {
      this.#alone = this.#readers.length === 1 ? reader : undefined;
      this.#steps?.next(
        this.#alone !== undefined,
        this.#readers.some(({ kind }) => kind === "whole text"),
        this.#alone?.tokensLeft,
      );
    }
    try {
      const result = await this.#session.act("get_result", { _name: "gres_req", req_id: reader.id }, isHeld);
      if (!isHeld) this.#stepMs = performance.now() - startMs;
      hasMore = this.#deliver(reader, result);
    } catch (error) {
      if (error instanceof EngineCallError && isLostPiece(error)) {
        reader.results.push({ kind: "unreadable" });
      } else {
        reader.failure = toError(error);
        this.#remove(reader);
        // A lost engine has no slot left to free.
        if (error instanceof EngineCallError) this.#cancel(reader).catch(() => {});
      }
    }
    this.#alone = undefined;
    reader.notify();
    return hasMore;
  }

  #deliver(reader: Reader, { data_json: json, is_error: isError, has_more: hasMore }: ActionResult): boolean {
    let isPreliminary = false;
    if (json === "null") {
      isPreliminary = true;
      reader.results.push({ kind: "accepted" });
    } else if (json) {
      const data: unknown = JSON.parse(json);
      const progress = progressOf(data);
      isPreliminary = progress !== undefined;
      if (progress && reader.kind === "text" && reader.promptTokens !== undefined)
        this.#steps?.measured(
          progress.processed - Math.max(reader.promptTokens, progress.cache),
          this.#stepMs,
        );
      reader.promptTokens = progress?.processed;
      reader.tokensLeft = progress ? progress.total - Math.max(progress.processed, progress.cache) : 0;
      reader.results.push({ kind: isError ? "error" : "data", data });
    }
    if (!hasMore) {
      reader.finished = true;
      this.#remove(reader);
    }
    return isPreliminary;
  }

  /** The engine has forgotten this request: nothing to poll, nothing to cancel. */
  #remove(reader: Reader): void {
    const at = this.#readers.indexOf(reader);
    if (at >= 0) this.#readers.splice(at, 1);
  }
}
