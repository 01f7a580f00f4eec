import { chmodSync, existsSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors/service-error.ts";
import { removeFile } from "./file-operations.ts";

/** Databases of locks in use; without a reference, garbage collection would close them and release the lock. */
const heldDatabases = new Set<DatabaseSync>();

/**
 * Takes the operating system's lock on a file, which is created if missing; undefined if another process has it. The
 * system releases the lock when its process ends, in any way. No other code of this process may open the file, because
 * closing it would release the lock. On a file system without locks, every process gets one.
 *
 * SQLite offers the only such lock in Node; its database stays empty.
 * @throws the system's error about the file or its folder
 */
export async function tryLock(file: string): Promise<Disposable | undefined> {
  const { DatabaseSync } = await import("node:sqlite");
  // Unlike Node, SQLite does not convert long paths to the form that Windows accepts.
  const database = new DatabaseSync(path.toNamespacedPath(file), { open: false, timeout: 0 });
  try {
    database.open();
    allowOnlyOwner(file);
    // A journal on disk would be a second file.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    const code = sqliteCode(error);
    if (code !== SQLITE.ioError && database.isOpen) database.close();
    if (code === SQLITE.busy) return undefined;
    if (code === SQLITE.notADatabase) {
      // Another program has overwritten the file, which contains no data.
      await removeFile(file);
      return await tryLock(file);
    }
    if (code === SQLITE.cannotOpen || code === SQLITE.readOnly) await explainRefusal(file);
    if (code !== SQLITE.ioError) throw error;
  }
  heldDatabases.add(database);
  return {
    [Symbol.dispose]() {
      heldDatabases.delete(database);
      if (database.isOpen) database.close();
    },
  };
}

/** Restricts the file to its owner, because users who can read it could lock it. */
function allowOnlyOwner(file: string): void {
  try {
    chmodSync(file, 0o600);
  } catch {
    // Some file systems have no permissions.
  }
}

/** Creates a file in the same folder to get the system's error, which SQLite does not report. */
async function explainRefusal(file: string): Promise<void> {
  const probe = `${file}.probe`;
  await (await open(probe, "w", 0o600)).close();
  await removeFile(probe);
}

/** Result codes of SQLite (https://sqlite.org/rescode.html). */
export const SQLITE = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const;

/** Primary result code, the low byte, of an error of SQLite; undefined for any other error. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && "errcode" in error && typeof error.errcode === "number")) return undefined;
  return error.errcode & 0xff;
}

/** Lock file of a folder. It is never removed, because another process may be about to lock it. */
export const LOCK_FILE = "daybreak.lock";

/** Polling interval for a lock of another process; changes take some milliseconds. */
const POLL_INTERVAL_MS = 3;
/** Pause between changes of this process, so that other processes get the lock, too. */
const FAIRNESS_PAUSE_MS = 2;
/** Only a stopped process, or one stuck in an unresponsive file system, has the lock for longer. */
const MAX_WAIT_MS = 30_000;

/** Claim of a file; released by disposing it, or by the system when the process ends. */
export type Claim = AsyncDisposable;

/** Serializes changes that several processes make in a shared folder; within a process in the order of the calls. */
export class FolderLock {
  readonly #folder: string;
  readonly #maxWaitMs: number;
  #last: Promise<unknown> = Promise.resolve();
  #releasedAt = Number.NEGATIVE_INFINITY;

  /** @param folder - created when the lock is first taken */
  constructor(folder: string, { maxWaitMs = MAX_WAIT_MS } = {}) {
    this.#folder = folder;
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * Runs a short action while no other process changes the folder. The action must not take the lock again.
   * @throws errors of the action; `model_busy` if another process does not release the lock; the system's error for a
   *   folder that is not writable
   */
  async run<T>(action: () => Promise<T>): Promise<T> {
    const result = this.#last.then(async () => {
      using _ = await this.#acquire();
      return await action();
    });
    const onRelease = (): void => {
      this.#releasedAt = performance.now();
    };
    this.#last = result.then(onRelease, onRelease);
    return await result;
  }

  /**
   * Claims a file name for long work; undefined while another process has it. Releasing the claim removes the file; the
   * claim of a killed process is taken over.
   */
  async claim(file: string): Promise<Claim | undefined> {
    return await this.run(async () => {
      await mkdir(path.dirname(file), { recursive: true });
      const lock = await tryLock(file);
      return lock && { [Symbol.asyncDispose]: async () => await this.#releaseClaim(file, lock) };
    });
  }

  /** Releases the lock even if the folder is no longer writable; the file then stays, unclaimed. */
  async #releaseClaim(file: string, lock: Disposable): Promise<void> {
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
    if (performance.now() - this.#releasedAt < FAIRNESS_PAUSE_MS) await sleep(FAIRNESS_PAUSE_MS);
    await mkdir(this.#folder, { recursive: true });
    const deadline = performance.now() + this.#maxWaitMs;
    for (;;) {
      const lock = await tryLock(path.join(this.#folder, LOCK_FILE));
      if (lock) return lock;
      if (performance.now() > deadline) throw heldByOther(this.#folder, this.#maxWaitMs);
      await sleep(POLL_INTERVAL_MS);
    }
  }
}

/** True if a process has claimed the file. Call it only while holding the folder's lock. */
export async function isClaimed(file: string): Promise<boolean> {
  if (!existsSync(file)) return false;
  using lock = await tryLock(file);
  return lock === undefined;
}

function heldByOther(folder: string, waitedMs: number): ServiceError {
  return new ServiceError(
    "model_busy",
    `Another process has held the lock ${path.join(folder, LOCK_FILE)} for ${Math.round(waitedMs / 1000)} s. If a daemon that shares the folder is suspended or hangs, end it; then try again.`,
  );
}
