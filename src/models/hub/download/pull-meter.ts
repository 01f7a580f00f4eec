import type { HubRetry, PullProgress } from "../../pull-progress.ts";

/** Ten lines per second: smooth for a progress bar, few for a stream. */
const REPORT_INTERVAL_MS = 100;

/** Adds up the bytes of all files of a pull and reports them: never decreasing, not too often, and always the end. */
export class PullMeter {
  readonly #report: (progress: PullProgress) => void;
  readonly #now: () => number;
  readonly #totalBytes: number;
  readonly #bytes = new Map<string, number>();
  #shown = -1;
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(
    totalBytes: number,
    report: (progress: PullProgress) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#totalBytes = totalBytes;
    this.#report = report;
    this.#now = now;
    this.#show();
  }

  /** @param received - bytes of this file on disk by now */
  update(file: string, received: number): void {
    this.#bytes.set(file, received);
    this.#show();
  }

  /** Reports that the hub has to be asked again. */
  retry(retry: HubRetry): void {
    this.#report({ status: "retrying", ...retry });
  }

  /** Reports what people may want to know. */
  note(text: string): void {
    this.#report({ status: "noted", text });
  }

  #show(): void {
    let sum = 0;
    for (const bytes of this.#bytes.values()) sum += bytes;
    // Discarding a part decreases the sum; the last reported value stays until it is reached again.
    if (sum <= this.#shown) return;
    const complete = sum === this.#totalBytes;
    const now = this.#now();
    if (!complete && now - this.#shownAt < REPORT_INTERVAL_MS) return;
    this.#shown = sum;
    // The first bytes are reported at once.
    if (sum > 0) this.#shownAt = now;
    this.#report({ status: "downloading", downloadedBytes: sum, totalBytes: this.#totalBytes });
    if (complete) this.#report({ status: "verifying" });
  }
}
