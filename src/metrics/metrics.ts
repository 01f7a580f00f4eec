/** Label of service_requests_total. */
export type Endpoint = "chat" | "generate" | "embeddings";

/** Metrics of requests. */
export interface Metrics {
  requestStarted(endpoint: Endpoint): void;
  /** Counts one more or one fewer request that waits for a slot. */
  requestsWaiting(change: 1 | -1): void;
  /** Counts a request that ended, also by failure or cancellation; `seconds` from admission to the end. */
  requestFinished(endpoint: Endpoint, seconds: number): void;
  /** Counts a token of a running answer. Called for each token, so it must be very fast. */
  tokenGenerated(): void;
  /** Records the end of an answer: its tokens that have not been counted one by one, and its speed. */
  tokensGenerated(model: string, tokens: number, tokensPerSecond: number): void;
  /** Records the `seconds` from the arrival of a request to the first token of its answer. */
  firstToken(seconds: number): void;
  /** Records the mean `seconds` between the tokens of a finished answer. */
  tokenInterval(seconds: number): void;
  /** Counts tokens of a prompt that were found in the KV cache. */
  cachedTokens(tokens: number): void;
  /** Counts the draft tokens of an answer, and those that the model accepted. */
  draftTokens(tokens: number, accepted: number): void;
  /** Counts tokens of a prompt that have been computed. */
  promptTokens(tokens: number): void;
  /** Counts an answer that another machine of the fleet continued; exactly, if it would have generated the same tokens. */
  answerMoved(isExact: boolean): void;
  /** Sums for the status routes. */
  readonly totals: {
    readonly requests: number;
    readonly tokensGenerated: number;
    readonly activeRequests: number;
  };
  /** The Prometheus text exposition. */
  render(): Promise<string>;
}

/** Metrics that count nothing: for a page, and for requests that another machine counts. */
export class NoMetrics implements Metrics {
  readonly totals = { requests: 0, tokensGenerated: 0, activeRequests: 0 };
  requestStarted(_endpoint: Endpoint): void {}
  requestsWaiting(): void {}
  requestFinished(): void {}
  tokenGenerated(): void {}
  tokensGenerated(): void {}
  firstToken(): void {}
  tokenInterval(): void {}
  cachedTokens(): void {}
  draftTokens(): void {}
  promptTokens(): void {}
  answerMoved(): void {}
  async render(): Promise<string> {
    return "";
  }
}
