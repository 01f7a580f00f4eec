import type { PullProgress, PullResult } from "../../models/model.ts";
import type { PullLine } from "./model-schemas.ts";

/** Ten lines a second are smooth for a progress bar; a fast download would otherwise write thousands. */
const MIN_LINE_INTERVAL_MS = 100;

type Pull = (onProgress: (progress: PullProgress) => void) => Promise<PullResult>;

/**
 * Runs a pull and tells its course in the order of the specification: downloading with a progress that never
 * falls and ends at 1.0, verifying, success. Inside, a model of several files goes back and forth between the
 * two; outside, verifying begins when all is there. A slow reader misses lines, never the end.
 */
export class PullLines implements AsyncIterable<PullLine> {
  readonly #now: () => number;
  readonly #result: Promise<PullResult>;
  readonly #begun = Promise.withResolvers<void>();
  #phase: "downloading" | "verifying" | "settled" = "downloading";
  #downloaded = 0;
  #total = 0;
  /** Resolves at the next report or at the end, then is replaced. */
  #news = Promise.withResolvers<void>();

  constructor(pull: Pull, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#result = pull((progress) => this.#report(progress));
    const settle = (): void => this.#enter("settled");
    this.#result.then(settle, settle);
  }

  /** Resolves when the download has begun or is done; rejects when it failed before, while a status can say so. */
  async begun(): Promise<void> {
    await Promise.race([this.#begun.promise, this.#result]);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PullLine, void, undefined> {
    yield* this.#downloading();
    const total = this.#phase === "verifying" ? this.#total : (await this.#result).sizeBytes;
    yield { status: "downloading", progress: 1, total_bytes: total, downloaded_bytes: total };
    yield { status: "verifying" };
    const result = await this.#result;
    yield { status: "success", model: result.alias };
  }

  async *#downloading(): AsyncGenerator<PullLine, void, undefined> {
    let written = -1;
    let writtenAt = Number.NEGATIVE_INFINITY;
    while (this.#phase === "downloading") {
      const progress = this.#total > 0 ? Math.min(1, this.#downloaded / this.#total) : 0;
      if (this.#total > 0 && progress > written && this.#now() - writtenAt >= MIN_LINE_INTERVAL_MS) {
        written = progress;
        writtenAt = this.#now();
        const bytes = { total_bytes: this.#total, downloaded_bytes: this.#downloaded };
        yield { status: "downloading", progress, ...bytes };
      } else {
        await this.#news.promise;
      }
    }
  }

  #report(progress: PullProgress): void {
    if (progress.status === "downloading") {
      this.#downloaded = progress.downloadedBytes;
      this.#total = progress.totalBytes;
      this.#enter("downloading");
    } else if (this.#downloaded >= this.#total) {
      this.#enter("verifying");
    }
    this.#begun.resolve();
  }

  /** Phases only go forward. */
  #enter(phase: "downloading" | "verifying" | "settled"): void {
    if (this.#phase === "downloading" || phase === "settled") this.#phase = phase;
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }
}
