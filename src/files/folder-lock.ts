import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors/service-error.ts";
import { tryLock } from "./file-lock.ts";
import { removeFile } from "./remove-file.ts";

/** Stays in the folder: a lock's file must not be removed while others may be about to take it. */
export const LOCK_FILE = "daybreak.lock";

/** Between two looks at a lock that somebody has; changes take some milliseconds. */
const LOOK_MS = 3;
/** Left to other processes between two changes of this one, or they would hardly find the lock free. */
const PAUSE_MS = 2;
/** Nobody keeps the lock for long but a process that is stopped, or stuck in a file system that does not answer. */
const LONGEST_WAIT_MS = 30_000;

/** A right that is given back by disposing of it; the system takes it from a process that has ended. */
export type Ownership = AsyncDisposable;

/**
 * The right to change what several processes share in one folder: one after the other, in the order they ask within
 * a process.
 */
export class FolderLock {
  readonly #folder: string;
  readonly #longestWaitMs: number;
  #last: Promise<unknown> = Promise.resolve();
  #releasedAt = Number.NEGATIVE_INFINITY;

  /** @param folder - is made when the lock is first taken */
  constructor(folder: string, { longestWaitMs = LONGEST_WAIT_MS } = {}) {
    this.#folder = folder;
    this.#longestWaitMs = longestWaitMs;
  }

  /**
   * Runs a short action while nobody else changes the folder. The action must not ask for the lock again.
   * @throws what the action throws; `model_busy` when another process keeps the lock; what the system says of a
   * folder that cannot be written to
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
   * Takes possession of a file's name for long work; undefined while another has it. Giving it back removes the file,
   * and what a killed owner has left is taken over.
   */
  async own(file: string): Promise<Ownership | undefined> {
    return await this.run(async () => {
      await mkdir(path.dirname(file), { recursive: true });
      const lock = await tryLock(file);
      return lock && { [Symbol.asyncDispose]: async () => await this.#giveBack(file, lock) };
    });
  }

  /** Gives the lock back even where the folder cannot be changed any more; a file that stays is nobody's. */
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

/** True while a process has the file as its own. To be asked only while the folder's lock is held. */
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
