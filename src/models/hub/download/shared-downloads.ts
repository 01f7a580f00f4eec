import { SharedTask } from "../../../async/promises.ts";
import type { PullProgress } from "../hub-types.ts";

/** Bytes of a file on disk so far, or another event of its download. */
type DownloadEvent = number | Extract<PullProgress, { status: "retrying" | "noted" }>;

export type OnDownloadEvent = (event: DownloadEvent) => void;

type Download = (report: OnDownloadEvent, signal: AbortSignal) => Promise<void>;

interface RunningDownload {
  readonly task: SharedTask<void>;
  readonly listeners: Set<OnDownloadEvent>;
  bytes: number;
}

/**
 * Runs one download per key at a time. A caller for a key that is being downloaded joins that download and may leave by
 * its own signal; the download is aborted when the last caller has left.
 */
export class SharedDownloads {
  readonly #running = new Map<string, RunningDownload>();

  /** Resolves or rejects as the download does; rejects with the signal's reason when that aborts. */
  async run(key: string, download: Download, onEvent: OnDownloadEvent, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    let running = this.#running.get(key);
    // An aborted download must have cleaned up before the next one begins.
    while (running?.task.aborted) {
      await running.task.settled;
      signal.throwIfAborted();
      running = this.#running.get(key);
    }
    running ??= this.#start(key, download);
    // A copy, so that the same listener may join twice.
    const listener: OnDownloadEvent = (event) => onEvent(event);
    running.listeners.add(listener);
    try {
      onEvent(running.bytes);
      await running.task.join(signal);
    } finally {
      running.listeners.delete(listener);
      // After the last caller has left, wait until files and locks are closed.
      if (running.task.aborted) await running.task.settled;
    }
  }

  #start(key: string, download: Download): RunningDownload {
    const listeners = new Set<OnDownloadEvent>();
    const report: OnDownloadEvent = (event) => {
      if (typeof event === "number") running.bytes = event;
      for (const listener of listeners) listener(event);
    };
    const task = new SharedTask(async (signal) => {
      await Promise.resolve(); // lets the first caller join before the first report
      try {
        await download(report, signal);
      } finally {
        this.#running.delete(key);
      }
    });
    const running: RunningDownload = { task, listeners, bytes: 0 };
    this.#running.set(key, running);
    return running;
  }
}

/** Adds up and reports the bytes of all files of a pull: never decreasing, and always with the final value. */
export class PullMeter {
  readonly #report: (progress: PullProgress) => void;
  readonly #totalBytes: number;
  readonly #bytes = new Map<string, number>();
  #reportedBytes = -1;

  constructor(totalBytes: number, report: (progress: PullProgress) => void) {
    this.#totalBytes = totalBytes;
    this.#report = report;
    this.#reportBytes();
  }

  update(file: string, event: DownloadEvent): void {
    if (typeof event !== "number") return this.#report(event);
    this.#bytes.set(file, event);
    this.#reportBytes();
  }

  #reportBytes(): void {
    let sum = 0;
    for (const bytes of this.#bytes.values()) sum += bytes;
    // A discarded part decreases the sum; nothing is reported until it exceeds the last reported value.
    if (sum <= this.#reportedBytes) return;
    this.#reportedBytes = sum;
    this.#report({ status: "downloading", downloadedBytes: sum, totalBytes: this.#totalBytes });
    if (sum === this.#totalBytes) this.#report({ status: "verifying" });
  }
}
