import type { PullProgress, PullResult } from "./model.ts";

/** A step of a pull, as clients are told of it. */
export type PullStep =
  | {
      readonly status: "downloading";
      readonly downloadedBytes: number;
      readonly totalBytes: number;
      /** From 0 to 1; of an empty download 1. */
      readonly progress: number;
      /** Why nothing arrives just now, and when the hub is asked again. */
      readonly note?: string;
    }
  | { readonly status: "verifying" }
  | { readonly status: "success"; readonly model: string };

/** Ten steps a second are smooth for a progress bar; a fast download would otherwise report thousands. */
const MIN_INTERVAL_MS = 100;

type Pull = (onProgress: (progress: PullProgress) => void) => Promise<PullResult>;

/**
 * Runs a pull and tells its course in the order of the specification: downloading with a progress that never
 * falls and ends at 1.0, verifying, success. Inside, a model of several files goes back and forth between the
 * two; outside, verifying begins when all is there. A slow reader misses steps, never the end.
 */
export class PullSteps implements AsyncIterable<PullStep> {
  readonly #now: () => number;
  readonly #result: Promise<PullResult>;
  readonly #begun = Promise.withResolvers<void>();
  #phase: "downloading" | "verifying" | "settled" = "downloading";
  #first: Bytes | undefined;
  /** Why nothing arrives, until a step has said so. */
  #note: string | undefined;
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

  /**
   * Resolves when the first byte has come, when there is something to say on why it does not, or when all is done;
   * rejects when the pull failed before, while a status can still say so.
   */
  async begun(): Promise<void> {
    await Promise.race([this.#begun.promise, this.#result]);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PullStep, void, undefined> {
    yield* this.#downloading();
    const total = this.#phase === "verifying" ? this.#total : (await this.#result).sizeBytes;
    yield downloading({ downloadedBytes: total, totalBytes: total });
    yield { status: "verifying" };
    const result = await this.#result;
    yield { status: "success", model: result.alias };
  }

  async *#downloading(): AsyncGenerator<PullStep, void, undefined> {
    let written = this.#first?.downloadedBytes ?? 0;
    let writtenAt = Number.NEGATIVE_INFINITY;
    // What was there at the start: nothing, or what an earlier pull has left.
    if (this.#first) yield downloading(this.#first);
    while (this.#phase === "downloading") {
      if (this.#note !== undefined) {
        const note = this.#note;
        this.#note = undefined;
        yield { ...downloading(this.#bytes(), 0), note };
      } else if (this.#downloaded > written && this.#now() - writtenAt >= MIN_INTERVAL_MS) {
        written = this.#downloaded;
        writtenAt = this.#now();
        yield downloading(this.#bytes());
      } else {
        await this.#news.promise;
      }
    }
  }

  #report(progress: PullProgress): void {
    if (progress.status === "retrying") {
      this.#note = `${progress.reason}; trying again in ${progress.waitMs / 1000} s`;
      this.#begun.resolve();
      this.#enter("downloading");
    } else if (progress.status === "downloading") {
      this.#first ??= progress;
      this.#downloaded = progress.downloadedBytes;
      this.#total = progress.totalBytes;
      this.#enter("downloading");
    } else if (this.#downloaded >= this.#total) {
      this.#enter("verifying");
    }
    if (this.#downloaded > 0) this.#begun.resolve();
  }

  #bytes(): Bytes {
    return { downloadedBytes: this.#downloaded, totalBytes: this.#total };
  }

  /** Phases only go forward. */
  #enter(phase: "downloading" | "verifying" | "settled"): void {
    if (this.#phase === "downloading" || phase === "settled") this.#phase = phase;
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }
}

type Downloading = Extract<PullStep, { status: "downloading" }>;

interface Bytes {
  readonly downloadedBytes: number;
  readonly totalBytes: number;
}

/** @param ofNothing - the progress while the total is 0: an empty download is a complete one */
function downloading({ downloadedBytes, totalBytes }: Bytes, ofNothing = 1): Downloading {
  const progress = totalBytes > 0 ? Math.min(1, downloadedBytes / totalBytes) : ofNothing;
  return { status: "downloading", downloadedBytes, totalBytes, progress };
}
