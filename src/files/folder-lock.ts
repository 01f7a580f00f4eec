import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors/service-error.ts";
import { tryLock } from "./file-lock.ts";
import { removeFile } from "./remove-file.ts";

/** Stays in the folder, because it must not be removed while others may be about to lock it. */
export const LOCK_FILE = "daybreak.lock";

/** Polling interval for a held lock; changes take some milliseconds. */
const LOOK_MS = 3;
/** Pause between changes of this process, so that other processes get the lock, too. */
const PAUSE_MS = 2;
/** Only a stopped process, or one stuck in an unresponsive file system, holds the lock for longer. */
const LONGEST_WAIT_MS = 30_000;

/** A lock that is released by disposing it; the system releases those of a process that has ended. */
export type Ownership = AsyncDisposable;

/**
 * Serializes changes that several processes make in a shared folder; within a process in the order of the calls.
 */
export class FolderLock {
  readonly #folder: string;
  readonly #longestWaitMs: number;
  #last: Promise<unknown> = Promise.resolve();
  #releasedAt = Number.NEGATIVE_INFINITY;

  /** @param folder - created when the lock is first taken */
  constructor(folder: string, { longestWaitMs = LONGEST_WAIT_MS } = {}) {
    this.#folder = folder;
    this.#longestWaitMs = longestWaitMs;
  }

  /**
   * Runs a short action while nobody else changes the folder. The action must not take the lock again.
   * @throws what the action throws; `model_busy` if another process keeps the lock; the system's error for a folder that is
   * not writable
   */
  async run<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      const lock = await this.#acquire();
      try {
        return await action();
      } finally {
        lock[Symbol.dispose]();
      }
    });
    this.#last = turn.then(
      () => this.#released(),
      () => this.#released(),
    );
    return await turn;
  }

  /**
   * Claims a file name for long work; undefined while another process has it. Releasing it removes the file; a claim left by
   * a killed process is taken over.
   */
  async own(file: string): Promise<Ownership | undefined> {
    return await this.run(async () => {
      await mkdir(path.dirname(file), { recursive: true });
      const lock = await tryLock(file);
      return lock && { [Symbol.asyncDispose]: async () => await this.#giveBack(file, lock) };
    });
  }

  /** Releases the lock even if the folder is no longer writable; a file that stays is unclaimed. */
  async #giveBack(file: string, lock: Disposable): Promise<void> {
    try {
      await this.run(async () => {
        lock[Symbol.dispose]();
        await removeFile(file);
      });
    } catch {
      lock[Symbol.dispose]();
    }
  }

  async #acquire(): Promise<Disposable> {
    if (performance.now() - this.#releasedAt < PAUSE_MS) await sleep(PAUSE_MS);
    await mkdir(this.#folder, { recursive: true });
    const deadline = performance.now() + this.#longestWaitMs;
    for (;;) {
      const lock = await tryLock(path.join(this.#folder, LOCK_FILE));
      if (lock) return lock;
      if (performance.now() > deadline) throw keptByOther(this.#folder, this.#longestWaitMs);
      await sleep(LOOK_MS);
    }
  }

  #released(): void {
    this.#releasedAt = performance.now();
  }
}

/** Whether a process has claimed the file. Call it only while holding the folder's lock. */
export async function isOwned(file: string): Promise<boolean> {
  if (!existsSync(file)) return false;
  using lock = await tryLock(file);
  return lock === undefined;
}

function keptByOther(folder: string, waitedMs: number): ServiceError {
  return new ServiceError(
    "model_busy",
    `Another process has held the lock ${path.join(folder, LOCK_FILE)} for ${Math.round(waitedMs / 1000)} s. If a daemon that shares the folder is suspended or hangs, end it; then try again.`,
  );
}
