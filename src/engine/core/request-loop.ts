import { abortable } from "../../async/promises.ts";
import { toError } from "../../errors/service-error.ts";
import {
  type SampledTokenReader,
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
 * Exception of llama.cpp for a result that is not valid UTF-8. The text is lost, but later results are usually valid.
 * After any other exception llama.cpp would report "has_more" forever, so polling must stop.
 */
const INVALID_UTF8 =
  /^\[json\.exception\.type_error\.316\] (invalid UTF-8 byte at index \d+|incomplete UTF-8 string; last byte): 0x[\dA-F]{2}$/;

/** Checks the last line of a call's log. Model output never is a separate line there, so it cannot forge this. */
function isInvalidUtf8({ message }: EngineCallError): boolean {
  return INVALID_UTF8.test(message.trimEnd().split("\n").at(-1) ?? "");
}

/**
 * Runs all requests of one engine. llama.cpp computes only while it is polled, and its worker handles one call at a
 * time. So one loop polls the requests round robin; cancellations and new requests go first. A cancellation waits for
 * at most one step; the step of a single request is aborted.
 *
 * A step generates a token for every slot, but a poll returns one result of one request. So only the first poll of a
 * round computes a step, and the other polls collect results without a step. A step with drafts yields several tokens,
 * so each request is then polled until it has no result left. The stock WASM computes a step at every poll, so results
 * of several requests accumulate and are delivered late.
 *
 * The caller must not run more requests than there are slots; llama.cpp would never answer them.
 */
export class RequestLoop {
  readonly #session: Pick<WllamaSession, "act" | "call">;
  readonly #steps: StepControl | undefined;
  readonly #sampled: SampledTokenReader | undefined;
  readonly #urgent: (() => Promise<void>)[] = [];
  readonly #betweenPolls: (() => Promise<void>)[] = [];
  readonly #requests: LoopRequest[] = [];
  /** Delivers the last result. Runs after the worker has received its next call, so that both run in parallel. */
  #delivery: (() => void) | undefined;
  #running = false;
  /** The request of the current step, if it is the only one. */
  #onlyRequest: LoopRequest | undefined;
  #stepMs = 0;
  #stepsBegun = 0;
  #draftTokens = 0;

  /**
   * @param steps controls the size of steps; absent: the batch size with which llama.cpp was loaded
   * @param sampled reads the tokens of requests that have a number; absent: tokens are not reported
   */
  constructor(
    session: Pick<WllamaSession, "act" | "call">,
    steps?: StepControl,
    sampled?: SampledTokenReader,
  ) {
    this.#session = session;
    this.#steps = steps;
    this.#sampled = sampled;
  }

  /** Number of steps that have begun. Each generates at most one token per request, besides accepted drafts. */
  get steps(): number {
    return this.#stepsBegun;
  }

  /**
   * Runs a request; resolves after its last result. Aborting cancels it. The slot is free when this settles.
   * @param onResult called with each result in order, while the worker computes the next one. If it throws, the request
   *   is cancelled and the error is thrown here
   * @param number number by which our kernels identify the request; see RequestNumbers
   * @throws EngineCallError if llama.cpp rejects the request or cannot parse its own answer, EngineFatalError if the
   *   engine is lost, the signal's reason if aborted
   */
  async run<Action extends StartAction>(
    action: Action,
    body: WorkerActions[Action],
    onResult: ResultReceiver<RequestResult>,
    signal: AbortSignal,
    number?: number,
  ): Promise<void> {
    signal.throwIfAborted();
    const { req_id: id } = await this.#runFirst(() => this.#session.act(action, body));
    const request = new LoopRequest(id ?? 0, inputKind(action, body), onResult, number);
    this.#requests.push(request);
    this.#start();
    try {
      await abortable(request.done, signal);
    } finally {
      await this.#withdraw(request);
    }
  }

  /**
   * Calls a verb of the worker that does not need a slot. At most one runs between two polls, so that requests are not
   * delayed. Rejects with the signal's reason if it is aborted before the call begins.
   */
  call(verb: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    return this.#queue(this.#betweenPolls, () => {
      signal?.throwIfAborted();
      return this.#session.call(verb, ...args);
    });
  }

  #runFirst<Result>(call: () => Promise<Result>): Promise<Result> {
    return this.#queue(this.#urgent, call);
  }

  /** Queues a call. Its errors go to its caller and do not affect the loop. */
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

  async #withdraw(request: LoopRequest): Promise<void> {
    request.ignoreResults();
    if (!this.#remove(request)) return;
    // Only during the prompt. Later a step is one token, and a model that cannot remove a token from its state would
    // lose the entire prompt.
    if (this.#onlyRequest === request && request.kind === "text" && request.promptTokens !== undefined)
      this.#steps?.abortStep();
    await this.#cancel(request).catch(() => {}); // fails only if the engine is lost
  }

  /** Frees a slot without computing a step. */
  async #cancel({ id }: LoopRequest): Promise<void> {
    await this.#runFirst(() => this.#session.act("cancel", { _name: "cncl_req", req_id: id }, true));
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#drive();
  }

  async #drive(): Promise<void> {
    /** Number of requests that have not collected their result of the last step. */
    let uncollected = 0;
    let repeated: LoopRequest | undefined;
    for (;;) {
      const call = this.#urgent.shift();
      if (call) {
        await this.#deliverAndWait(call());
        continue;
      }
      const callBetweenPolls = this.#betweenPolls.shift();
      if (callBetweenPolls) await this.#deliverAndWait(callBetweenPolls());
      if (repeated && !this.#requests.includes(repeated)) repeated = undefined;
      const request: LoopRequest | undefined = repeated ?? this.#nextRequest();
      if (!request) {
        this.#runDelivery();
        if (this.#betweenPolls.length + this.#urgent.length > 0) continue;
        break;
      }
      const withoutStep = repeated !== undefined || uncollected > 0;
      if (!repeated) uncollected = uncollected > 0 ? uncollected - 1 : this.#requests.length - 1;
      repeated = (await this.#poll(request, withoutStep)) ? request : undefined;
    }
    this.#running = false;
  }

  /** Delivers the last result, then waits for the worker's answer. */
  async #deliverAndWait<Result>(answer: Promise<Result>): Promise<Result> {
    this.#runDelivery();
    return await answer;
  }

  #runDelivery(): void {
    const delivery = this.#delivery;
    this.#delivery = undefined;
    delivery?.();
  }

  #nextRequest(): LoopRequest | undefined {
    const request = this.#requests.shift();
    if (request) this.#requests.push(request);
    return request;
  }

  /** Polls one request. @returns true if the same step may have yielded another result for it */
  async #poll(request: LoopRequest, withoutStep: boolean): Promise<boolean> {
    const startMs = performance.now();
    if (!withoutStep) {
      this.#stepsBegun += 1;
      this.#onlyRequest = this.#requests.length === 1 ? request : undefined;
      this.#steps?.prepareStep(
        this.#onlyRequest !== undefined,
        this.#requests.some(({ kind }) => kind === "one-step text"),
        this.#onlyRequest?.tokensLeft,
      );
    }
    const body = { _name: "gres_req", req_id: request.id } as const;
    try {
      const result = await this.#deliverAndWait(this.#session.act("get_result", body, withoutStep));
      if (!withoutStep) {
        this.#stepMs = performance.now() - startMs;
        this.#draftTokens = this.#steps?.draftTokens ?? 0;
      }
      this.#assignTokens();
      return this.#handleResult(request, result);
    } catch (error) {
      if (error instanceof EngineCallError && isInvalidUtf8(error)) {
        this.#assignTokens();
        this.#delivery = () => request.deliver({ kind: "unreadable" });
        return this.#draftTokens > 0;
      }
      this.#remove(request);
      request.fail(error);
      // Frees the slot, unless the engine is lost.
      if (error instanceof EngineCallError) this.#cancel(request).catch(() => {});
      return false;
    } finally {
      this.#onlyRequest = undefined;
    }
  }

  #assignTokens(): void {
    for (const [number, sampled] of this.#sampled?.take() ?? [])
      this.#requests.find((request) => request.number === number)?.addTokens(sampled);
  }

  #handleResult(
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
        this.#steps?.recordStep(
          progress.processed - Math.max(request.promptTokens, progress.cache),
          this.#stepMs,
        );
      request.promptTokens = progress?.processed;
      request.tokensLeft = progress ? progress.total - Math.max(progress.processed, progress.cache) : 0;
      result = { kind: isError ? "error" : "data", data };
    }
    if (!hasMore) this.#remove(request);
    this.#delivery = () => {
      if (result) request.deliver(result);
      if (!hasMore) request.finish();
    };
    return hasMore === true && (isPreliminary || (this.#draftTokens > 0 && result !== undefined));
  }

  /** Stops polling a request. Returns false if it was not being polled. */
  #remove(request: LoopRequest): boolean {
    const at = this.#requests.indexOf(request);
    if (at < 0) return false;
    this.#requests.splice(at, 1);
    return true;
  }
}
