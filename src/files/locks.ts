import { chmodSync, existsSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors/service-error.ts";
import { removeFile } from "./file-operations.ts";

/** Databases whose locks are held: garbage collection would close them, also while the lock's holder only waits. */
const held = new Set<DatabaseSync>();

/**
 * Takes the operating system's lock on a file, which is created if missing; undefined if another process holds it. The
 * system releases the lock when its holder ends, in any way. Nothing else in this process may open the file, because
 * closing it would release the lock. On a file system without locks everybody gets one.
 *
 * Node's only such lock is that of SQLite, whose database stays empty here.
 * @throws the system's error about the file or its folder
 */
export async function tryLock(file: string): Promise<Disposable | undefined> {
  const { DatabaseSync } = await import("node:sqlite");
  // Unlike Node, SQLite does not write the name of a file so that Windows takes it also when it is long.
  const database = new DatabaseSync(path.toNamespacedPath(file), { open: false, timeout: 0 });
  try {
    database.open();
    allowOnlyOwner(file);
    // Keep the journal in memory; it would be a second file.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    const code = sqliteCode(error);
    if (code !== SQLITE.ioError && database.isOpen) database.close();
    if (code === SQLITE.busy) return undefined;
    if (code === SQLITE.notADatabase) {
      // Somebody has written to it; it contains nothing important.
      await removeFile(file);
      return await tryLock(file);
    }
    if (code === SQLITE.cannotOpen || code === SQLITE.readOnly) await explainRefusal(file);
    if (code !== SQLITE.ioError) throw error;
  }
  held.add(database);
  return {
    [Symbol.dispose]() {
      held.delete(database);
      if (database.isOpen) database.close();
    },
  };
}

/** Other users who can read the file could lock it. */
function allowOnlyOwner(file: string): void {
  try {
    chmodSync(file, 0o600);
  } catch {
    // Some file systems have no permissions.
  }
}

/** Throws the system's reason why no file can be created in this folder, which SQLite does not report. */
async function explainRefusal(file: string): Promise<void> {
  const probe = `${file}.probe`;
  await (await open(probe, "w", 0o600)).close();
  await removeFile(probe);
}

/** Result codes of SQLite that say what to do (https://sqlite.org/rescode.html). */
export const SQLITE = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const;

/** The primary result code, which is the low byte, of an error of SQLite; undefined for any other error. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && "errcode" in error && typeof error.errcode === "number")) return undefined;
  return error.errcode & 0xff;
}

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
