import { SharedTask } from "../../../async/shared-task.ts";
import type { HubRetry } from "../../pull-progress.ts";

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
