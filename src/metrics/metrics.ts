/** Label of service_requests_total. */
export type Endpoint = "chat" | "generate" | "embeddings";

/** What the service counts. The names on the wire are those of the interface specification. */
export interface Metrics {
  requestStarted(endpoint: Endpoint): void;
  /** One request more, or one less, waits for a slot. */
  requestsWaiting(change: 1 | -1): void;
  /** `seconds` from admission to the end, failed and cancelled requests included. */
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
