import type { FinishReason, GenerationEvent } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Endpoint, Metrics } from "../metrics/metrics.ts";

/** What becomes known of one generation, embedding or ranking. Of one that fails or is cancelled, that may be little. */
export interface WorkFigures {
  readonly endpoint?: Endpoint;
  /** The alias that answers. */
  readonly model?: string;
  readonly promptTokens?: number;
  /** Prompt tokens that were found in the KV cache. */
  readonly cachedTokens?: number;
  readonly completionTokens?: number;
  /** Milliseconds from the request's arrival, as those below: its model was there. */
  readonly loadedMs?: number;
  /** It had a slot. */
  readonly admittedMs?: number;
  readonly firstTokenMs?: number;
  readonly tokensPerSecond?: number;
  readonly finishReason?: FinishReason;
  /** Code of the error that ended it. */
  readonly failure?: string;
  /** Its client left before it was complete. */
  readonly isAborted?: boolean;
}

export interface WorkFollower {
  /** Of the request, as in its line in the log; undefined where nobody follows it. */
  readonly request?: string | undefined;
  /** Called a few times for each piece of work, never for each token. */
  note(figures: WorkFigures): void;
  /** Nothing more will be known; called once. */
  end(): void;
  /** Begins another piece of work for the same request. */
  further(): WorkFollower;
}

/** Called when a piece of work begins, within the request that it belongs to. */
export type FollowWork = () => WorkFollower;

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

const NOBODY: WorkFollower = { note: () => undefined, end: () => undefined, further: () => NOBODY };

/** Counts requests from their arrival to their end, however they end. */
export class RequestAccounting {
  readonly #metrics: Metrics;
  readonly #now: () => number;
  readonly #follow: FollowWork;
  #active = 0;

  constructor(metrics: Metrics, now: () => number, follow: FollowWork = () => NOBODY) {
    this.#metrics = metrics;
    this.#now = now;
    this.#follow = follow;
  }

  /** Requests running or waiting. */
  get active(): number {
    return this.#active;
  }

  /**
   * Dispose the result when the request has ended.
   * @param first who follows the request that this is a further choice of
   * @param startedAt when it arrived
   */
  begin(endpoint: Endpoint, first?: WorkFollower, startedAt: number = this.#now()): RequestAccount {
    this.#active += 1;
    this.#metrics.requestStarted(endpoint);
    const onEnd = (): void => {
      this.#active -= 1;
      this.#metrics.requestFinished(endpoint, (this.#now() - startedAt) / 1000);
    };
    const follower = first ? first.further() : this.#follow();
    follower.note({ endpoint });
    return new RequestAccount(this.#metrics, this.#now, follower, onEnd, startedAt);
  }
}

/** The account of one request. Its figures may come after it has been disposed: whatever it holds is free before. */
export class RequestAccount implements Disposable {
  readonly #metrics: Metrics;
  readonly #now: () => number;
  readonly follower: WorkFollower;
  readonly #onEnd: () => void;
  readonly #startedAt: number;
  #model = "";
  /** Tokens of the prompt and of the answer that the metrics have been told of. */
  #promptTokens = 0;
  #tokens = 0;
  #isDisposed = false;
  #isOver = false;

  constructor(
    metrics: Metrics,
    now: () => number,
    follower: WorkFollower,
    onEnd: () => void,
    startedAt: number,
  ) {
    this.#metrics = metrics;
    this.#now = now;
    this.follower = follower;
    this.#onEnd = onEnd;
    this.#startedAt = startedAt;
  }

  /** Milliseconds since its arrival. */
  get elapsedMs(): number {
    return this.#now() - this.#startedAt;
  }

  /** It has its model. */
  answeredBy(alias: string): void {
    this.#model = alias;
    this.follower.note({ model: alias, loadedMs: this.elapsedMs });
  }

  /** Waits for a slot. */
  async waitFor<Permit>(permit: Promise<Permit>): Promise<Permit> {
    this.#metrics.requestsWaiting(1);
    try {
      const held = await permit;
      this.follower.note({ admittedMs: this.elapsedMs });
      return held;
    } finally {
      this.#metrics.requestsWaiting(-1);
    }
  }

  /** So much of its prompt has been computed. */
  prompted(processed: number, total: number): void {
    this.#countPrompt(processed);
    this.follower.note({ promptTokens: total });
  }

  /** One more token; called for each, so that it must cost next to nothing. */
  token(): void {
    this.#tokens += 1;
    this.#metrics.tokenGenerated();
    if (this.#tokens > 1) return;
    const firstTokenMs = this.elapsedMs;
    this.#metrics.firstToken(firstTokenMs / 1000);
    this.follower.note({ firstTokenMs });
  }

  /**
   * The generation is over; completes its last event.
   * @param given tokens of the answer that were given, and not generated: its speed is nobody's
   */
  generated(done: DoneEvent, given = 0): DoneEvent & { totalMs: number; tokensPerSecond: number } {
    const totalMs = this.elapsedMs;
    const { promptTokens, completionTokens, cachedTokens, guesses } = done.usage;
    // The first token comes with the prompt, so the time of a single token is that of the request.
    const seconds = (completionTokens > 1 ? done.timings.completionMs : totalMs) / 1000;
    const tokensPerSecond = seconds > 0 ? completionTokens / seconds : 0;
    this.#countPrompt(promptTokens);
    // Not each token has a piece of text.
    const further = Math.max(0, completionTokens - this.#tokens);
    this.#metrics.tokensGenerated(this.#model, further, given > 0 ? Number.NaN : tokensPerSecond);
    this.#metrics.cachedTokens(cachedTokens);
    if (guesses) this.#metrics.guessedTokens(guesses.tokens, guesses.kept);
    // The first token comes with the prompt.
    if (completionTokens > 1 && given === 0)
      this.#metrics.tokenInterval(done.timings.completionMs / 1000 / (completionTokens - 1));
    const finishReason = done.reason;
    this.follower.note({ promptTokens, cachedTokens, completionTokens, finishReason });
    if (given === 0) this.follower.note({ tokensPerSecond });
    this.#over();
    return { ...done, totalMs, tokensPerSecond };
  }

  /** Its texts have been embedded or ranked. */
  computed(promptTokens: number): void {
    this.#countPrompt(promptTokens);
    this.follower.note({ promptTokens });
    this.#over();
  }

  /** It failed, or its client has left, or nobody wants more of it (undefined). */
  failed(error: unknown, client: AbortSignal): void {
    if (this.#isOver) return;
    if (client.aborted) this.follower.note({ isAborted: true });
    else if (error !== undefined) this.follower.note({ failure: ServiceError.from(error).code });
    this.#over();
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

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.follower.end();
  }
}
