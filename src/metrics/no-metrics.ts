import type { Endpoint, Metrics } from "./metrics.ts";

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
