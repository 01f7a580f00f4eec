import { SharedTask } from "../../../async/promises.ts";
import type { HubRetry, PullProgress } from "../hub-store.ts";

/** What a download reports to everyone who waits for it. */
export interface DownloadListener {
  /** Bytes on disk by now. */
  readonly onBytes: (bytes: number) => void;
  readonly onRetry: (retry: HubRetry) => void;
  /** Another machine, of this name, sends it. */
  readonly onMachine: (name: string) => void;
}

type Download = (report: DownloadListener, signal: AbortSignal) => Promise<void>;

interface RunningDownload {
  readonly task: SharedTask<void>;
  readonly listeners: Set<DownloadListener>;
  bytes: number;
}

/**
 * Runs one download per key at a time. A request for a key that is being downloaded joins the download and may leave by
 * its own signal; the download ends when the last one has left.
 */
export class SharedDownloads {
  readonly #running = new Map<string, RunningDownload>();

  /** Resolves or rejects as the download does; rejects with the signal's reason when that aborts. */
  async run(
    key: string,
    download: Download,
    { onBytes, onRetry, onMachine }: DownloadListener,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    let running = this.#running.get(key);
    // An abandoned download must have cleaned up before the next one begins.
    while (running?.task.aborted) {
      await running.task.settled;
      signal.throwIfAborted();
      running = this.#running.get(key);
    }
    running ??= this.#start(key, download);
    // Wrapped, so that the same listener may join twice.
    const listener: DownloadListener = { onBytes, onRetry, onMachine };
    running.listeners.add(listener);
    try {
      onBytes(running.bytes);
      await running.task.join(signal);
    } finally {
      running.listeners.delete(listener);
      // When the last one leaves, files and locks must be closed.
      if (running.task.aborted) await running.task.settled;
    }
  }

  #start(key: string, download: Download): RunningDownload {
    const listeners = new Set<DownloadListener>();
    const report: DownloadListener = {
      onBytes(bytes) {
        running.bytes = bytes;
        for (const listener of listeners) listener.onBytes(bytes);
      },
      onRetry(retry) {
        for (const listener of listeners) listener.onRetry(retry);
      },
      onMachine(name) {
        for (const listener of listeners) listener.onMachine(name);
      },
    };
    const task = new SharedTask(async (signal) => {
      await Promise.resolve(); // it reports to those who joined, the first one included
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
