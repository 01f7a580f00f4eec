/** Label of service_requests_total. */
export type Endpoint = "chat" | "generate" | "embeddings";

/** What the service counts. */
export interface Metrics {
  requestStarted(endpoint: Endpoint): void;
  /** One more or one fewer request is waiting for a slot. */
  requestsWaiting(change: 1 | -1): void;
  /** `seconds` from admission to the end, including failed and cancelled requests. */
  requestFinished(endpoint: Endpoint, seconds: number): void;
  /** One more token of an answer that is not over; called for each, so that it must cost next to nothing. */
  tokenGenerated(): void;
  /** An answer is over: the tokens of it that have not been counted one by one, and its speed. */
  tokensGenerated(model: string, tokens: number, tokensPerSecond: number): void;
  /** `seconds` from the arrival of a request to the first token of its answer. */
  firstToken(seconds: number): void;
  /** Mean `seconds` between the tokens of an answer that is over. */
  tokenInterval(seconds: number): void;
  /** So many tokens of a prompt were found in the KV cache. */
  cachedTokens(tokens: number): void;
  /** So many tokens of an answer were guessed in advance, and so many of them were right. */
  guessedTokens(tokens: number, kept: number): void;
  /** So many more tokens of a prompt have been computed. */
  promptTokens(tokens: number): void;
  /** Another machine of the fleet went on with an answer; one that would have said other tokens in it does not go on exactly. */
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

/** Counts nothing: for a page, and for what is counted elsewhere. */
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
  guessedTokens(): void {}
  promptTokens(): void {}
  answerMoved(): void {}
  async render(): Promise<string> {
    return "";
  }
}
