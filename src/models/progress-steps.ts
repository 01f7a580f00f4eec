import type { PullProgress, PullResult } from "./hub/hub-store.ts";
import type { QuantizedModel, QuantizeProgress } from "./quantize/quantize-options.ts";

/** A step of a pull, as reported to clients. */
export type PullStep =
  | {
      readonly status: "downloading";
      readonly downloadedBytes: number;
      readonly totalBytes: number;
      /** From 0 to 1; 1 for an empty download. */
      readonly progress: number;
      /** Why no data arrives at the moment, and when Daybreak retries; or where it comes from. */
      readonly note?: string;
    }
  | { readonly status: "verifying" }
  | { readonly status: "success"; readonly model: string };

/** Ten steps per second are smooth for a progress bar; a fast download would otherwise report thousands. */
const MIN_INTERVAL_MS = 100;

/** Of a pull that nobody looks at, no more are kept. */
const MAX_NOTES = 8;

type Pull = (onProgress: (progress: PullProgress) => void) => Promise<PullResult>;

/**
 * Runs a pull and reports it in the specified order: downloading, with a progress that never decreases and ends at 1.0,
 * verifying, success. A model of several files actually alternates between downloading and verifying, but verifying is
 * only reported when everything has been downloaded. A slow reader may miss steps, but never the end.
 */
export class PullSteps implements AsyncIterable<PullStep> {
  readonly #now: () => number;
  readonly #result: Promise<PullResult>;
  readonly #begun = Promise.withResolvers<void>();
  #phase: "downloading" | "verifying" | "settled" = "downloading";
  #first: Bytes | undefined;
  /** What a step has yet to tell. */
  #notes: string[] = [];
  #downloaded = 0;
  #total = 0;
  /** Resolves at the next report or at the end, and is then replaced. */
  #news = Promise.withResolvers<void>();

  constructor(pull: Pull, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#result = pull((progress) => this.#report(progress));
    const settle = (): void => this.#enter("settled");
    this.#result.then(settle, settle);
  }

  /**
   * Resolves when the first byte has arrived, when there is a reason to report why not, or when everything is done. Rejects
   * if the pull fails before that, while an HTTP status can still say so.
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
    // The bytes at the start: none, or those left by an earlier pull.
    if (this.#first) yield downloading(this.#first);
    while (this.#phase === "downloading") {
      const note = this.#notes.shift();
      if (note !== undefined) {
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
    // The last ones count, when nobody reads them.
    if (this.#notes.length === MAX_NOTES) this.#notes.shift();
    if (progress.status === "retrying") {
      this.#notes.push(`${progress.reason}; trying again in ${progress.waitMs / 1000} s`);
      this.#begun.resolve();
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

/** @param ofNothing - the progress while the total is 0: an empty download is complete */
function downloading({ downloadedBytes, totalBytes }: Bytes, ofNothing = 1): Downloading {
  const progress = totalBytes > 0 ? Math.min(1, downloadedBytes / totalBytes) : ofNothing;
  return { status: "downloading", downloadedBytes, totalBytes, progress };
}

/** A step of a quantization, as reported to clients. */
export type QuantizeStep =
  | ({ readonly status: "quantizing" } & QuantizeProgress)
  | ({ readonly status: "success" } & QuantizedModel);

type Quantize = (onProgress: (progress: QuantizeProgress) => void) => Promise<QuantizedModel>;

/**
 * Runs a quantization and reports how far it is, at last that it is complete, and its result. A slow reader may miss steps, but
 * never the end.
 */
export class QuantizeSteps implements AsyncIterable<QuantizeStep> {
  readonly #now: () => number;
  readonly #result: Promise<QuantizedModel>;
  readonly #begun = Promise.withResolvers<void>();
  #latest: QuantizeProgress | undefined;
  #isSettled = false;
  /** Resolves at the next report or at the end, and is then replaced. */
  #news = Promise.withResolvers<void>();

  constructor(quantize: Quantize, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#result = quantize((progress) => {
      this.#latest = progress;
      this.#begun.resolve();
      this.#tell();
    });
    const settle = (): void => {
      this.#isSettled = true;
      this.#tell();
    };
    this.#result.then(settle, settle);
  }

  /** Resolves when the work has begun. Rejects if it fails before that, while an HTTP status can still say so. */
  async begun(): Promise<void> {
    await Promise.race([this.#begun.promise, this.#result]);
  }

  /** Resolves with the result, for those who do not follow the steps. */
  async finished(): Promise<QuantizedModel> {
    return await this.#result;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<QuantizeStep, void, undefined> {
    let written: QuantizeProgress | undefined;
    let writtenAt = Number.NEGATIVE_INFINITY;
    while (!this.#isSettled) {
      const { promise } = this.#news;
      if (this.#latest && this.#latest !== written && this.#now() - writtenAt >= MIN_INTERVAL_MS) {
        written = this.#latest;
        writtenAt = this.#now();
        yield { status: "quantizing", ...written };
      } else {
        await promise;
      }
    }
    const result = await this.#result;
    if (this.#latest && this.#latest !== written) yield { status: "quantizing", ...this.#latest };
    yield { status: "success", ...result };
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }
}

/** The steps of a generator in another form, and its result; whoever leaves early ends that generator too. */
export async function* mapSteps<From, To, Result>(
  steps: AsyncGenerator<From, Result, void>,
  convert: (step: From) => To,
): AsyncGenerator<To, Result, void> {
  await using open = steps;
  for (;;) {
    const step = await open.next();
    if (step.done) return step.value;
    yield convert(step.value);
  }
}
