/** Label of service_requests_total. */
export type Endpoint = "chat" | "generate" | "embeddings";

/** What the service counts. */
export interface Metrics {
  requestStarted(endpoint: Endpoint): void;
  /** One more or one fewer request is waiting for a slot. */
  requestsWaiting(change: 1 | -1): void;
  /** `seconds` from admission to the end, including failed and cancelled requests. */
  requestFinished(endpoint: Endpoint, seconds: number): void;
  tokensGenerated(model: string, tokens: number, tokensPerSecond: number): void;
  promptTokens(tokens: number): void;
  /** Sums for the status routes. */
  readonly totals: {
    readonly requests: number;
    readonly tokensGenerated: number;
    readonly activeRequests: number;
  };
  /** The Prometheus text exposition. */
  render(): Promise<string>;
}
