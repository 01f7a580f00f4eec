import type { HubRetry } from "../../model.ts";

/** What a task may report to all who wait for it. */
export interface TaskListener {
  /** Bytes on disk by now. */
  readonly onBytes: (bytes: number) => void;
  readonly onRetry: (retry: HubRetry) => void;
}

type Task = (report: TaskListener, signal: AbortSignal) => Promise<void>;

interface RunningTask {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  readonly listeners: Set<TaskListener>;
  bytes: number;
}

/**
 * Runs one task for each key at a time. Who asks for a key that is being worked on joins; a joiner may leave by
 * its own signal without disturbing the others, and the task ends when the last one has left.
 */
export class SharedTasks {
  readonly #running = new Map<string, RunningTask>();

  /** Resolves or rejects as the task does; rejects with the signal's reason when that aborts. */
  async run(key: string, task: Task, listener: TaskListener, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    let running = this.#running.get(key);
    // One that everybody has left is still clearing up: it must be over before the next begins.
    while (running?.controller.signal.aborted) {
      await running.done.catch(() => {});
      signal.throwIfAborted();
      running = this.#running.get(key);
    }
    running ??= this.#start(key, task);
    await join(running, listener, signal);
  }

  #start(key: string, task: Task): RunningTask {
    const controller = new AbortController();
    const listeners = new Set<TaskListener>();
    const report: TaskListener = {
      onBytes(bytes) {
        running.bytes = bytes;
        for (const listener of listeners) listener.onBytes(bytes);
      },
      onRetry(retry) {
        for (const listener of listeners) listener.onRetry(retry);
      },
    };
    const done = Promise.resolve()
      .then(() => task(report, controller.signal))
      .finally(() => this.#running.delete(key));
    const running: RunningTask = { done, controller, listeners, bytes: 0 };
    this.#running.set(key, running);
    return running;
  }
}

async function join(running: RunningTask, joiner: TaskListener, signal: AbortSignal): Promise<void> {
  const left = Promise.withResolvers<never>();
  const leave = (): void => left.reject(signal.reason);
  // A listener of its own, so that the same one may join twice.
  const listener: TaskListener = {
    onBytes: (bytes) => joiner.onBytes(bytes),
    onRetry: (retry) => joiner.onRetry(retry),
  };
  running.listeners.add(listener);
  signal.addEventListener("abort", leave, { once: true });
  try {
    joiner.onBytes(running.bytes);
    await Promise.race([running.done, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    running.listeners.delete(listener);
    if (running.listeners.size === 0) {
      running.controller.abort(signal.reason);
      // Whoever leaves last finds files and locks closed.
      await running.done.catch(() => {});
    }
  }
}
