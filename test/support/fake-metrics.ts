import type { Endpoint, Metrics } from "../../src/metrics/metrics.ts";

/** Notes what was counted. */
export class FakeMetrics implements Metrics {
  readonly started: Endpoint[] = [];
  readonly finished: Endpoint[] = [];
  waiting = 0;
  generated = 0;
  prompted = 0;
  cached = 0;
  readonly guesses = { tokens: 0, kept: 0 };
  readonly firstTokens: number[] = [];
  readonly intervals: number[] = [];

  get totals(): Metrics["totals"] {
    return {
      requests: this.started.length,
      tokensGenerated: this.generated,
      activeRequests: this.started.length - this.finished.length,
    };
  }

  requestStarted(endpoint: Endpoint): void {
    this.started.push(endpoint);
  }

  requestsWaiting(change: number): void {
    this.waiting += change;
  }

  requestFinished(endpoint: Endpoint): void {
    this.finished.push(endpoint);
  }

  tokenGenerated(): void {
    this.generated += 1;
  }

  firstToken(seconds: number): void {
    this.firstTokens.push(seconds);
  }

  tokensGenerated(_model: string, tokens: number): void {
    this.generated += tokens;
  }

  tokenInterval(seconds: number): void {
    this.intervals.push(seconds);
  }

  cachedTokens(tokens: number): void {
    this.cached += tokens;
  }

  draftTokens(tokens: number, kept: number): void {
    this.guesses.tokens += tokens;
    this.guesses.kept += kept;
  }

  promptTokens(tokens: number): void {
    this.prompted += tokens;
  }

  readonly moves: boolean[] = [];

  answerMoved(isExact: boolean): void {
    this.moves.push(isExact);
  }

  render(): Promise<string> {
    return Promise.resolve("");
  }
}
