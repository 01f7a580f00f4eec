import type { PullProgress, PullResult } from "./hub/hub-types.ts";
import type { QuantizedModel, QuantizeProgress } from "./quantize/quantize-options.ts";

export type PullStep =
  | {
      readonly status: "downloading";
      readonly downloadedBytes: number;
      readonly totalBytes: number;
      /** From 0 to 1; 1 for an empty download. */
      readonly progress: number;
      /** Reason for a pause and time of the next attempt, or the machine that sends the data. */
      readonly note?: string;
    }
  | { readonly status: "verifying" }
  | { readonly status: "success"; readonly model: string };

/** Minimum time between steps: ten per second suffice for a progress bar, and a fast download has thousands. */
const MIN_INTERVAL_MS = 100;

/** Maximum notes buffered while nothing reads the steps. */
const MAX_NOTES = 8;

type Pull = (onProgress: (progress: PullProgress) => void) => Promise<PullResult>;

/**
 * Runs a pull and yields its steps in this order: downloading, with a progress that never decreases and ends at 1.0,
 * verifying, success. A pull of several files alternates between downloading and verifying, but verifying is only
 * reported after the last download. A slow reader misses intermediate steps, but never the last ones.
 */
export class PullSteps implements AsyncIterable<PullStep> {
  readonly #now: () => number;
  readonly #result: Promise<PullResult>;
  readonly #started = Promise.withResolvers<void>();
  #phase: "downloading" | "verifying" | "settled" = "downloading";
  #first: Bytes | undefined;
  /** Notes that no step has carried yet. */
  #notes: string[] = [];
  #downloaded = 0;
  #total = 0;
  /** Resolves at the next report or at the end, and is then replaced. */
  #change = Promise.withResolvers<void>();

  constructor(pull: Pull, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#result = pull((progress) => this.#onProgress(progress));
    const settle = (): void => this.#enter("settled");
    this.#result.then(settle, settle);
  }

  /**
   * Resolves at the first byte, the first retry or the end. Rejects if the pull fails before that, so that the client
   * gets an HTTP error status.
   */
  async started(): Promise<void> {
    await Promise.race([this.#started.promise, this.#result]);
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
    let reported = this.#first?.downloadedBytes ?? 0;
    let reportedAt = Number.NEGATIVE_INFINITY;
    // Bytes at the start: none, or those of an interrupted pull.
    if (this.#first) yield downloading(this.#first);
    while (this.#phase === "downloading") {
      const note = this.#notes.shift();
      if (note !== undefined) {
        yield { ...downloading(this.#bytes(), 0), note };
      } else if (this.#downloaded > reported && this.#now() - reportedAt >= MIN_INTERVAL_MS) {
        reported = this.#downloaded;
        reportedAt = this.#now();
        yield downloading(this.#bytes());
      } else {
        await this.#change.promise;
      }
    }
  }

  #onProgress(progress: PullProgress): void {
    // A full buffer drops the oldest note.
    if (this.#notes.length === MAX_NOTES) this.#notes.shift();
    if (progress.status === "retrying") {
      this.#notes.push(`${progress.reason}; trying again in ${progress.waitMs / 1000} s`);
      this.#started.resolve();
      this.#enter("downloading");
    } else if (progress.status === "noted") {
      this.#notes.push(progress.text);
      this.#enter("downloading");
    } else if (progress.status === "downloading") {
      this.#first ??= progress;
      this.#downloaded = progress.downloadedBytes;
      this.#total = progress.totalBytes;
      this.#enter("downloading");
    } else if (this.#downloaded >= this.#total) {
      this.#enter("verifying");
    }
    if (this.#downloaded > 0) this.#started.resolve();
  }

  #bytes(): Bytes {
    return { downloadedBytes: this.#downloaded, totalBytes: this.#total };
  }

  /** Phases only go forward. */
  #enter(phase: "downloading" | "verifying" | "settled"): void {
    if (this.#phase === "downloading" || phase === "settled") this.#phase = phase;
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

type Downloading = Extract<PullStep, { status: "downloading" }>;

interface Bytes {
  readonly downloadedBytes: number;
  readonly totalBytes: number;
}

/** @param progressIfEmpty - progress while the total is 0: an empty download is complete */
function downloading({ downloadedBytes, totalBytes }: Bytes, progressIfEmpty = 1): Downloading {
  const progress = totalBytes > 0 ? Math.min(1, downloadedBytes / totalBytes) : progressIfEmpty;
  return { status: "downloading", downloadedBytes, totalBytes, progress };
}

export type QuantizeStep =
  | ({ readonly status: "quantizing" } & QuantizeProgress)
  | ({ readonly status: "success" } & QuantizedModel);

type Quantize = (onProgress: (progress: QuantizeProgress) => void) => Promise<QuantizedModel>;

/**
 * Runs a quantization and yields its progress, and success with the result. A slow reader misses intermediate steps,
 * but never the last ones.
 */
export class QuantizeSteps implements AsyncIterable<QuantizeStep> {
  readonly #now: () => number;
  readonly #result: Promise<QuantizedModel>;
  readonly #started = Promise.withResolvers<void>();
  #latest: QuantizeProgress | undefined;
  #isSettled = false;
  /** Resolves at the next report or at the end, and is then replaced. */
  #change = Promise.withResolvers<void>();

  constructor(quantize: Quantize, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#result = quantize((progress) => {
      this.#latest = progress;
      this.#started.resolve();
      this.#notify();
    });
    const settle = (): void => {
      this.#isSettled = true;
      this.#notify();
    };
    this.#result.then(settle, settle);
  }

  /**
   * Resolves when the work has begun. Rejects if it fails before that, so that the client gets an HTTP error status.
   */
  async started(): Promise<void> {
    await Promise.race([this.#started.promise, this.#result]);
  }

  /** Resolves with the result, for callers that do not iterate over the steps. */
  async finished(): Promise<QuantizedModel> {
    return await this.#result;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<QuantizeStep, void, undefined> {
    let reported: QuantizeProgress | undefined;
    let reportedAt = Number.NEGATIVE_INFINITY;
    while (!this.#isSettled) {
      const { promise } = this.#change;
      if (this.#latest && this.#latest !== reported && this.#now() - reportedAt >= MIN_INTERVAL_MS) {
        reported = this.#latest;
        reportedAt = this.#now();
        yield { status: "quantizing", ...reported };
      } else {
        await promise;
      }
    }
    const result = await this.#result;
    if (this.#latest && this.#latest !== reported) yield { status: "quantizing", ...this.#latest };
    yield { status: "success", ...result };
  }

  #notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

/** Converts the steps of a generator; returns its result. A caller that stops early ends that generator, too. */
export async function* mapSteps<From, To, Result>(
  steps: AsyncGenerator<From, Result, void>,
  convert: (step: From) => To,
): AsyncGenerator<To, Result, void> {
  await using source = steps;
  for (;;) {
    const step = await source.next();
    if (step.done) return step.value;
    yield convert(step.value);
  }
}
