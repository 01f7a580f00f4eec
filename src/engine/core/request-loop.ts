import { abortable } from "../../async/abortable.ts";
import { toError } from "../../errors/to-error.ts";
import type { StepControl } from "./step-control.ts";
import { inputKind, LoopRequest, progressOf, type RequestResult, type StartAction } from "./loop-request.ts";
import type { ActionResult, WorkerActions } from "./wllama-api.ts";
import { EngineCallError, type WllamaSession } from "./wllama-session.ts";

/**
 * What llama.cpp throws while it writes a result that is not UTF-8: that piece is lost, and what follows is usually fine.
 * The result has been counted by then. One that cannot be read for another reason has not, and llama.cpp would promise a
 * further one forever: so no other exception may be polled past.
 */
const LOST_PIECE =
  /^\[json\.exception\.type_error\.316\] (invalid UTF-8 byte at index \d+|incomplete UTF-8 string; last byte): 0x[\dA-F]{2}$/;

/** The exception is the last that a call logs; what a model has written never is a line of its own there. */
function isLostPiece({ message }: EngineCallError): boolean {
  return LOST_PIECE.test(message.trimEnd().split("\n").at(-1) ?? "");
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
  readonly #requests: LoopRequest[] = [];
  /** What the last poll brought is handed over once the worker has its next call: it computes meanwhile. */
  #handOver: (() => void) | undefined;
  #running = false;
  /** The request for which alone a step is being computed. */
  #alone: LoopRequest | undefined;
  /** How long the last step took, of which several results may come. */
  #stepMs = 0;

  /** @param steps how long steps are; absent: as llama.cpp was loaded */
  constructor(session: Pick<WllamaSession, "act">, steps?: Pick<StepControl, "next" | "measured" | "leave">) {
    this.#session = session;
    this.#steps = steps;
  }

  /**
   * Runs a request; Resolves after its last result. Aborting cancels it; the slot is free when this settles.
   * @param onResult takes the results in their order, each while the worker computes what comes next; what it throws
   *   cancels the request and is thrown here
   * @throws EngineCallError when llama.cpp refuses the request or cannot read its own answer, EngineFatalError when the
   *   engine is lost, the signal's reason when aborted
   */
  async run<Action extends StartAction>(
    action: Action,
    body: WorkerActions[Action],
    onResult: (result: RequestResult) => void,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    const { req_id: id } = await this.#first(() => this.#session.act(action, body));
    const request = new LoopRequest(id ?? 0, inputKind(action, body), onResult);
    this.#requests.push(request);
    this.#start();
    try {
      await abortable(request.over, signal);
    } finally {
      await this.#leave(request);
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

  async #leave(request: LoopRequest): Promise<void> {
    request.abandon();
    if (!this.#remove(request)) return;
    // Of an answer that has begun a step is a token; and what cannot forget a token would lose the whole prompt.
    if (this.#alone === request && request.kind === "text" && request.promptTokens !== undefined)
      this.#steps?.leave();
    await this.#cancel(request).catch(() => {}); // the engine is lost: there is no slot left to free
  }

  /** Frees a slot; the others need not compute for that. */
  async #cancel({ id }: LoopRequest): Promise<void> {
    await this.#first(() => this.#session.act("cancel", { _name: "cncl_req", req_id: id }, true));
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#drive();
  }

  async #drive(): Promise<void> {
    /** How many requests have yet to collect what the last step gave. */
    let uncollected = 0;
    let sameAgain: LoopRequest | undefined;
    for (;;) {
      const call = this.#urgent.shift();
      if (call) {
        await this.#meanwhile(call());
        continue;
      }
      const aside = this.#asides.shift();
      if (aside) await this.#meanwhile(aside());
      if (sameAgain && !this.#requests.includes(sameAgain)) sameAgain = undefined;
      const request: LoopRequest | undefined = sameAgain ?? this.#nextRequest();
      if (!request) {
        this.#handOverNow();
        if (this.#asides.length + this.#urgent.length > 0) continue;
        break;
      }
      const isHeld = sameAgain !== undefined || uncollected > 0;
      if (!sameAgain) uncollected = uncollected > 0 ? uncollected - 1 : this.#requests.length - 1;
      sameAgain = (await this.#poll(request, isHeld)) ? request : undefined;
    }
    this.#running = false;
  }

  /** Hands over what the last poll brought, then waits for the worker's answer. */
  async #meanwhile<Result>(answer: Promise<Result>): Promise<Result> {
    this.#handOverNow();
    return await answer;
  }

  #handOverNow(): void {
    const handOver = this.#handOver;
    this.#handOver = undefined;
    handOver?.();
  }

  /** Goes round: each request's turn comes after all others'. */
  #nextRequest(): LoopRequest | undefined {
    const request = this.#requests.shift();
    if (request) this.#requests.push(request);
    return request;
  }

  /** @returns true when the same step may have given the request something more */
  async #poll(request: LoopRequest, isHeld: boolean): Promise<boolean> {
    const startMs = performance.now();
    if (!isHeld) {
      this.#alone = this.#requests.length === 1 ? request : undefined;
      this.#steps?.next(
        this.#alone !== undefined,
        this.#requests.some(({ kind }) => kind === "whole text"),
        this.#alone?.tokensLeft,
      );
    }
    const body = { _name: "gres_req", req_id: request.id } as const;
    try {
      const result = await this.#meanwhile(this.#session.act("get_result", body, isHeld));
      if (!isHeld) this.#stepMs = performance.now() - startMs;
      return this.#deliver(request, result);
    } catch (error) {
      if (error instanceof EngineCallError && isLostPiece(error)) {
        this.#handOver = () => request.take({ kind: "unreadable" });
      } else {
        this.#remove(request);
        request.fail(error);
        // A lost engine has no slot left to free.
        if (error instanceof EngineCallError) this.#cancel(request).catch(() => {});
      }
      return false;
    } finally {
      this.#alone = undefined;
    }
  }

  #deliver(
    request: LoopRequest,
    { data_json: json, is_error: isError, has_more: hasMore }: ActionResult,
  ): boolean {
    let isPreliminary = false;
    let result: RequestResult | undefined;
    if (json === "null") {
      isPreliminary = true;
      result = { kind: "accepted" };
    } else if (json) {
      const data: unknown = JSON.parse(json);
      const progress = progressOf(data);
      isPreliminary = progress !== undefined;
      if (progress && request.kind === "text" && request.promptTokens !== undefined)
        this.#steps?.measured(
          progress.processed - Math.max(request.promptTokens, progress.cache),
          this.#stepMs,
        );
      request.promptTokens = progress?.processed;
      request.tokensLeft = progress ? progress.total - Math.max(progress.processed, progress.cache) : 0;
      result = { kind: isError ? "error" : "data", data };
    }
    if (!hasMore) this.#remove(request);
    this.#handOver = () => {
      if (result) request.take(result);
      if (!hasMore) request.finish();
    };
    return isPreliminary;
  }

  /** The engine has forgotten this request: nothing to poll, nothing to cancel. False: it had already. */
  #remove(request: LoopRequest): boolean {
    const at = this.#requests.indexOf(request);
    if (at < 0) return false;
    this.#requests.splice(at, 1);
    return true;
  }
}
