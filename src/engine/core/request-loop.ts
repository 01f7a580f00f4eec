import { abortable } from "../../async/promises.ts";
import { toError } from "../../errors/to-error.ts";
import {
  type ChosenTokens,
  inputKind,
  LoopRequest,
  progressOf,
  type RequestResult,
  type ResultReceiver,
  type StartAction,
} from "./loop-request.ts";
import type { StepControl } from "./kernel-controls.ts";
import type { ActionResult, WorkerActions } from "./wllama-api.ts";
import { EngineCallError, type WllamaSession } from "./wllama-session.ts";

/**
 * llama.cpp throws this when a result is not valid UTF-8: that piece is lost, but later ones are usually fine. After
 * any other exception llama.cpp would announce another result forever, so polling must stop.
 */
const LOST_PIECE =
  /^\[json\.exception\.type_error\.316\] (invalid UTF-8 byte at index \d+|incomplete UTF-8 string; last byte): 0x[\dA-F]{2}$/;

/** The exception is the last line that a call logs; model output never forms its own line there. */
function isLostPiece({ message }: EngineCallError): boolean {
  return LOST_PIECE.test(message.trimEnd().split("\n").at(-1) ?? "");
}

type StepSettings = Pick<StepControl, "next" | "measured" | "leave" | "guessed">;

/**
 * Drives all requests of one engine. llama.cpp computes only while it is polled, and its worker handles one call at a
 * time, so one loop polls the requests in turn; cancellations and new requests go first. A cancellation waits for one
 * step at most; when the request is the only one, its step is aborted.
 *
 * A step gives a token to every slot, but a poll returns one result of one request. So the first poll of a round
 * computes, and the others are held: they only collect. A step with guesses gives several tokens, so each request is polled
 * until it has no result left. The stock WASM computes at every poll, so results of several
 * requests pile up and are delivered late.
 *
 * The caller must not exceed the number of slots: a request beyond it would never be answered.
 */
export class RequestLoop {
  readonly #session: Pick<WllamaSession, "act">;
  readonly #steps: StepSettings | undefined;
  readonly #chosen: Pick<ChosenTokens, "take"> | undefined;
  readonly #urgent: (() => Promise<void>)[] = [];
  readonly #betweenPolls: (() => Promise<void>)[] = [];
  readonly #requests: LoopRequest[] = [];
  /** Delivers the last result after the worker has received its next call, so that both run in parallel. */
  #handOver: (() => void) | undefined;
  #running = false;
  /** The request of the current step, when it is the only one. */
  #alone: LoopRequest | undefined;
  /** Duration of the last step, which may yield several results. */
  #stepMs = 0;
  #begun = 0;
  #guessed = 0;

  /**
   * @param steps sets the size of steps; absent: they keep the size with which llama.cpp was loaded
   * @param chosen knows the tokens of answers that have a number; absent: nobody does
   */
  constructor(
    session: Pick<WllamaSession, "act">,
    steps?: StepSettings,
    chosen?: Pick<ChosenTokens, "take">,
  ) {
    this.#session = session;
    this.#steps = steps;
    this.#chosen = chosen;
  }

  /** Steps that have begun; each gives a request at most one token that is not guessed. */
  get steps(): number {
    return this.#begun;
  }

  /**
   * Runs a request; resolves after its last result. Aborting cancels it; the slot is free when this settles.
   * @param onResult called with each result in order, while the worker computes the next one; if it throws, the request
   *   is cancelled and the error is thrown here
   * @param number under which our kernels know the request, if they do
   * @throws EngineCallError when llama.cpp rejects the request or cannot parse its own answer, EngineFatalError when
   *   the engine is lost, the signal's reason when aborted
   */
  async run<Action extends StartAction>(
    action: Action,
    body: WorkerActions[Action],
    onResult: ResultReceiver<RequestResult>,
    signal: AbortSignal,
    number?: number,
  ): Promise<void> {
    signal.throwIfAborted();
    const { req_id: id } = await this.#first(() => this.#session.act(action, body));
    const request = new LoopRequest(id ?? 0, inputKind(action, body), onResult, number);
    this.#requests.push(request);
    this.#start();
    try {
      await abortable(request.over, signal);
    } finally {
      await this.#leave(request);
    }
  }

  /** Runs a call that does not need a slot. At most one runs between two polls, so that generation is not delayed. */
  runBetweenPolls<Result>(call: () => Promise<Result>): Promise<Result> {
    return this.#queue(this.#betweenPolls, call);
  }

  /** Runs a call before the next poll. */
  #first<Result>(call: () => Promise<Result>): Promise<Result> {
    return this.#queue(this.#urgent, call);
  }

  /** Errors of a call go to its caller; the loop goes on. */
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
    // Only during the prompt: later a step is one token, and a context that cannot drop it would lose the whole prompt.
    if (this.#alone === request && request.kind === "text" && request.promptTokens !== undefined)
      this.#steps?.leave();
    await this.#cancel(request).catch(() => {}); // the engine is lost: there is no slot to free
  }

  /** Frees a slot without computing a step. */
  async #cancel({ id }: LoopRequest): Promise<void> {
    await this.#first(() => this.#session.act("cancel", { _name: "cncl_req", req_id: id }, true));
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#drive();
  }

  async #drive(): Promise<void> {
    /** Requests that have not collected their result of the last step. */
    let uncollected = 0;
    let sameAgain: LoopRequest | undefined;
    for (;;) {
      const call = this.#urgent.shift();
      if (call) {
        await this.#meanwhile(call());
        continue;
      }
      const callBetweenPolls = this.#betweenPolls.shift();
      if (callBetweenPolls) await this.#meanwhile(callBetweenPolls());
      if (sameAgain && !this.#requests.includes(sameAgain)) sameAgain = undefined;
      const request: LoopRequest | undefined = sameAgain ?? this.#nextRequest();
      if (!request) {
        this.#handOverNow();
        if (this.#betweenPolls.length + this.#urgent.length > 0) continue;
        break;
      }
      const isHeld = sameAgain !== undefined || uncollected > 0;
      if (!sameAgain) uncollected = uncollected > 0 ? uncollected - 1 : this.#requests.length - 1;
      sameAgain = (await this.#poll(request, isHeld)) ? request : undefined;
    }
    this.#running = false;
  }

  /** Delivers the last result, then waits for the worker's answer. */
  async #meanwhile<Result>(answer: Promise<Result>): Promise<Result> {
    this.#handOverNow();
    return await answer;
  }

  #handOverNow(): void {
    const handOver = this.#handOver;
    this.#handOver = undefined;
    handOver?.();
  }

  /** Round robin. */
  #nextRequest(): LoopRequest | undefined {
    const request = this.#requests.shift();
    if (request) this.#requests.push(request);
    return request;
  }

  /** @returns true when the same step may have yielded another result for the request */
  async #poll(request: LoopRequest, isHeld: boolean): Promise<boolean> {
    const startMs = performance.now();
    if (!isHeld) {
      this.#begun += 1;
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
      if (!isHeld) {
        this.#stepMs = performance.now() - startMs;
        this.#guessed = this.#steps?.guessed ?? 0;
      }
      this.#noteTokens();
      return this.#deliver(request, result);
    } catch (error) {
      if (error instanceof EngineCallError && isLostPiece(error)) {
        this.#noteTokens();
        this.#handOver = () => request.take({ kind: "unreadable" });
        return this.#guessed > 0;
      }
      this.#remove(request);
      request.fail(error);
      // A lost engine has no slot to free.
      if (error instanceof EngineCallError) this.#cancel(request).catch(() => {});
      return false;
    } finally {
      this.#alone = undefined;
    }
  }

  /** Tells the requests which tokens a step has given them. */
  #noteTokens(): void {
    for (const [number, chosen] of this.#chosen?.take() ?? [])
      this.#requests.find((request) => request.number === number)?.note(chosen);
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
    return hasMore === true && (isPreliminary || (this.#guessed > 0 && result !== undefined));
  }

  /** Stops polling a request. Returns false when it was gone already. */
  #remove(request: LoopRequest): boolean {
    const at = this.#requests.indexOf(request);
    if (at < 0) return false;
    this.#requests.splice(at, 1);
    return true;
  }
}
