import type { QuantizedModel, QuantizeProgress } from "./quantize-options.ts";

/** A step of a quantization, as reported to clients. */
export type QuantizeStep =
  | ({ readonly status: "quantizing" } & QuantizeProgress)
  | ({ readonly status: "success" } & QuantizedModel);

/** Ten steps per second are smooth for a progress bar. */
const MIN_INTERVAL_MS = 100;

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
