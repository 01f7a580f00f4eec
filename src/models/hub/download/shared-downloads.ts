import { SharedTask } from "../../../async/promises.ts";
import type { HubRetry, PullProgress } from "../hub-types.ts";

/** Callbacks of a caller that waits for a download. */
export interface DownloadListener {
  /** Called with the bytes on disk so far. */
  readonly onBytes: (bytes: number) => void;
  readonly onRetry: (retry: HubRetry) => void;
  /** Called with the name of another machine that sends data. */
  readonly onMachine: (name: string) => void;
}

type Download = (report: DownloadListener, signal: AbortSignal) => Promise<void>;

interface RunningDownload {
  readonly task: SharedTask<void>;
  readonly listeners: Set<DownloadListener>;
  bytes: number;
}

/**
 * Runs one download per key at a time. A caller for a key that is being downloaded joins that download and may leave by
 * its own signal; the download is aborted when the last caller has left.
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
    // An aborted download must have cleaned up before the next one begins.
    while (running?.task.aborted) {
      await running.task.settled;
      signal.throwIfAborted();
      running = this.#running.get(key);
    }
    running ??= this.#start(key, download);
    // A copy, so that the same listener may join twice.
    const listener: DownloadListener = { onBytes, onRetry, onMachine };
    running.listeners.add(listener);
    try {
      onBytes(running.bytes);
      await running.task.join(signal);
    } finally {
      running.listeners.delete(listener);
      // After the last caller has left, wait until files and locks are closed.
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

  /** @param received - bytes of this file on disk so far */
  update(file: string, received: number): void {
    this.#bytes.set(file, received);
    this.#reportBytes();
  }

  /** Reports that a request to the hub is retried. */
  retry(retry: HubRetry): void {
    this.#report({ status: "retrying", ...retry });
  }

  /** Reports a note for users. */
  note(text: string): void {
    this.#report({ status: "noted", text });
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
