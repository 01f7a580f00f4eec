import type { FinishReason, GenerationEvent } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Endpoint, Metrics } from "../metrics/metrics.ts";

/** Statistics of one generation, embedding or reranking, as far as known: few if it fails or is cancelled early. */
export interface WorkStats {
  readonly endpoint?: Endpoint;
  /** Alias of the model. */
  readonly model?: string;
  readonly promptTokens?: number;
  /** Prompt tokens found in the KV cache. */
  readonly cachedTokens?: number;
  readonly completionTokens?: number;
  /** Milliseconds from the request's arrival until its model was available. */
  readonly loadedMs?: number;
  /** Milliseconds from the request's arrival until it had a slot. */
  readonly admittedMs?: number;
  readonly firstTokenMs?: number;
  readonly tokensPerSecond?: number;
  readonly finishReason?: FinishReason;
  /** Code of the error that ended the request. */
  readonly failure?: string;
  /** True if the client disconnected before the end. */
  readonly isAborted?: boolean;
}

export interface WorkObserver {
  /** Request id as in the log; undefined without an observer. */
  readonly request?: string | undefined;
  /** Reports statistics; called a few times per request, never per token. */
  report(figures: WorkStats): void;
  /** Ends the observation; called once. */
  end(): void;
  /** Begins the observation of another choice or answer of the same request. */
  fork(): WorkObserver;
}

/** Called when a generation, embedding or reranking begins, in the async context of its HTTP request. */
export type ObserveWork = () => WorkObserver;

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

const NO_OBSERVER: WorkObserver = { report: () => undefined, end: () => undefined, fork: () => NO_OBSERVER };

/** Counts requests from their arrival to their end. */
export class RequestAccounting {
  readonly #metrics: Metrics;
  readonly #now: () => number;
  readonly #observe: ObserveWork;
  #active = 0;

  constructor(metrics: Metrics, now: () => number, follow: ObserveWork = () => NO_OBSERVER) {
    this.#metrics = metrics;
    this.#now = now;
    this.#observe = follow;
  }

  /** Number of running and waiting requests. */
  get active(): number {
    return this.#active;
  }

  /**
   * Begins the account of a request. Dispose the result when the request has ended.
   * @param first observer of the request's first choice, if this is another one
   * @param startedAt time of arrival, on the clock of `now`
   */
  begin(endpoint: Endpoint, first?: WorkObserver, startedAt: number = this.#now()): RequestAccount {
    this.#active += 1;
    this.#metrics.requestStarted(endpoint);
    const onEnd = (): void => {
      this.#active -= 1;
      this.#metrics.requestFinished(endpoint, (this.#now() - startedAt) / 1000);
    };
    const observer = first ? first.fork() : this.#observe();
    observer.report({ endpoint });
    return new RequestAccount(this.#metrics, this.#now, observer, onEnd, startedAt);
  }
}

/** Account of one request. Statistics may still come after its disposal, because resources are released first. */
export class RequestAccount implements Disposable {
  readonly #metrics: Metrics;
  readonly #now: () => number;
  readonly observer: WorkObserver;
  readonly #onEnd: () => void;
  readonly #startedAt: number;
  #model = "";
  /** Tokens of the prompt and of the answer that are counted in the metrics. */
  #promptTokens = 0;
  #tokens = 0;
  #isDisposed = false;
  #hasEnded = false;

  constructor(
    metrics: Metrics,
    now: () => number,
    observer: WorkObserver,
    onEnd: () => void,
    startedAt: number,
  ) {
    this.#metrics = metrics;
    this.#now = now;
    this.observer = observer;
    this.#onEnd = onEnd;
    this.#startedAt = startedAt;
  }

  /** Milliseconds since the request's arrival. */
  get elapsedMs(): number {
    return this.#now() - this.#startedAt;
  }

  /** Records that the model is available. */
  modelLoaded(alias: string): void {
    this.#model = alias;
    this.observer.report({ model: alias, loadedMs: this.elapsedMs });
  }

  /** Counts the request as waiting until it has a permit. */
  async waitFor<Permit>(permit: Promise<Permit>): Promise<Permit> {
    this.#metrics.requestsWaiting(1);
    try {
      const granted = await permit;
      this.observer.report({ admittedMs: this.elapsedMs });
      return granted;
    } finally {
      this.#metrics.requestsWaiting(-1);
    }
  }

  /** Records prefill progress. */
  promptComputed(processed: number, total: number): void {
    this.#countPrompt(processed);
    this.observer.report({ promptTokens: total });
  }

  /** Records a generated token; called for every token, so it must be fast. */
  token(): void {
    this.#tokens += 1;
    this.#metrics.tokenGenerated();
    if (this.#tokens > 1) return;
    const firstTokenMs = this.elapsedMs;
    this.#metrics.firstToken(firstTokenMs / 1000);
    this.observer.report({ firstTokenMs });
  }

  /**
   * Records the end of the generation and completes its last event.
   * @param prefixTokens tokens that the answer began with and that were not generated, which make its speed meaningless
   */
  generated(done: DoneEvent, prefixTokens = 0): DoneEvent & { totalMs: number; tokensPerSecond: number } {
    const totalMs = this.elapsedMs;
    const { promptTokens, completionTokens, cachedTokens, guesses } = done.usage;
    // The first token comes with the prompt, so the time of a single token is that of the request.
    const seconds = (completionTokens > 1 ? done.timings.completionMs : totalMs) / 1000;
    const tokensPerSecond = seconds > 0 ? completionTokens / seconds : 0;
    this.#countPrompt(promptTokens);
    // Some tokens have no text of their own.
    const further = Math.max(0, completionTokens - this.#tokens);
    this.#metrics.tokensGenerated(this.#model, further, prefixTokens > 0 ? Number.NaN : tokensPerSecond);
    this.#metrics.cachedTokens(cachedTokens);
    if (guesses) this.#metrics.draftTokens(guesses.tokens, guesses.kept);
    // The first token comes with the prompt.
    if (completionTokens > 1 && prefixTokens === 0)
      this.#metrics.tokenInterval(done.timings.completionMs / 1000 / (completionTokens - 1));
    const finishReason = done.reason;
    this.observer.report({ promptTokens, cachedTokens, completionTokens, finishReason });
    if (prefixTokens === 0) this.observer.report({ tokensPerSecond });
    this.#endOnce();
    return { ...done, totalMs, tokensPerSecond };
  }

  /** Records the end of an embedding or reranking. */
  textsComputed(promptTokens: number): void {
    this.#countPrompt(promptTokens);
    this.observer.report({ promptTokens });
    this.#endOnce();
  }

  /** Records a failure, an abort by the client, or (undefined) that the reader stopped. */
  failed(error: unknown, client: AbortSignal): void {
    if (this.#hasEnded) return;
    if (client.aborted) this.observer.report({ isAborted: true });
    else if (error !== undefined) this.observer.report({ failure: ServiceError.from(error).code });
    this.#endOnce();
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#onEnd();
  }

  #countPrompt(tokens: number): void {
    const further = tokens - this.#promptTokens;
    if (further <= 0) return;
    this.#promptTokens = tokens;
    this.#metrics.promptTokens(further);
  }

  #endOnce(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.observer.end();
  }
}
