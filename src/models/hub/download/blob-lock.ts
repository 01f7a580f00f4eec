import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { z } from "zod";
import type { Sleep } from "../remote/retry.ts";

/** How often the owner shows that it lives, and how often a waiter looks. */
const HEARTBEAT_MS = 2000;

/** Looks without a sign of life after which an owner on another machine is given up: half a minute. */
const SILENT_LOOKS = 15;

const ownerSchema = z.object({
  id: z.string(),
  pid: z.int().positive(),
  host: z.string(),
  beat: z.int().nonnegative(),
});

type Owner = z.output<typeof ownerSchema>;

/**
 * The right to write one blob, across processes: a file that only one can create. The owner rewrites it as a
 * heartbeat. A lock is stale when its process is gone from this machine or when its heart stands still for as
 * long as the waiter has watched it; file times play no part, as clocks differ and machines sleep.
 */
export class BlobLock implements AsyncDisposable {
  readonly #path: string;
  readonly #owner: Owner;
  readonly #timer: NodeJS.Timeout;
  readonly #lost = new AbortController();
  #beating: Promise<void> = Promise.resolve();

  private constructor(lockPath: string, owner: Owner) {
    this.#path = lockPath;
    this.#owner = owner;
    this.#timer = setInterval(() => {
      this.#beating = this.#beat();
    }, HEARTBEAT_MS).unref();
  }

  /** Aborts when another process has taken the lock for stale; the owner must then stop writing. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Waits for the lock. `onWait` is called at every look while another owner works; when it returns true the
   * wait is over without a lock, because there is nothing left to do.
   */
  static async acquire(
    lockPath: string,
    options: { sleep: Sleep; signal: AbortSignal; onWait: () => Promise<boolean> },
  ): Promise<BlobLock | undefined> {
    await mkdir(path.dirname(lockPath), { recursive: true });
    const owner: Owner = { id: randomUUID(), pid: process.pid, host: os.hostname(), beat: 0 };
    let seen = "";
    let silentLooks = 0;
    for (;;) {
      options.signal.throwIfAborted();
      if (await tryCreate(lockPath, owner)) return new BlobLock(lockPath, owner);
      const text = await readText(lockPath);
      if (text === undefined) continue;
      silentLooks = text === seen ? silentLooks + 1 : 0;
      seen = text;
      if (silentLooks >= SILENT_LOOKS || isDead(parseOwner(text))) {
        await takeAway(lockPath, text);
        continue;
      }
      if (await options.onWait()) return undefined;
      await options.sleep(HEARTBEAT_MS, options.signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    if ((await this.#isOurs()) === true) await rm(this.#path, { force: true });
  }

  async #beat(): Promise<void> {
    if ((await this.#isOurs()) === false) {
      clearInterval(this.#timer);
      this.#lost.abort();
      return;
    }
    this.#owner.beat++;
    const next = `${this.#path}.${this.#owner.id}`;
    try {
      await writeNew(next, JSON.stringify(this.#owner));
      await rename(next, this.#path);
    } catch {
      // A beat that cannot be written is like one that is late; the next one may succeed.
      await rm(next, { force: true });
    }
  }

  /** Undefined when it cannot be told just now. */
  async #isOurs(): Promise<boolean | undefined> {
    const text = await readText(this.#path);
    if (text === undefined) return false;
    return text === "" ? undefined : parseOwner(text)?.id === this.#owner.id;
  }
}

async function tryCreate(lockPath: string, owner: Owner): Promise<boolean> {
  try {
    await writeNew(lockPath, JSON.stringify(owner));
    return true;
  } catch (error) {
    if (isExists(error)) return false;
    throw error;
  }
}

async function writeNew(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx");
  try {
    await handle.writeFile(text);
  } finally {
    await handle.close();
  }
}

/** Moves a stale lock aside first, so that of two waiters only one removes it. */
async function takeAway(lockPath: string, seen: string): Promise<void> {
  const aside = `${lockPath}.${randomUUID()}`;
  try {
    if ((await readText(lockPath)) === seen) await rename(lockPath, aside);
  } catch {
    // Another waiter was quicker.
  }
  await rm(aside, { force: true });
}

/** A lock that cannot be read as one was being written, or its writer died at it: time decides. */
function parseOwner(text: string): Owner | undefined {
  try {
    return ownerSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function isDead(owner: Owner | undefined): boolean {
  if (owner === undefined || owner.host !== os.hostname()) return false;
  try {
    process.kill(owner.pid, 0);
    return false;
  } catch (error) {
    // EPERM says that it lives and belongs to someone else.
    return hasCode(error, "ESRCH");
  }
}

/** Undefined when there is no such file, empty when it cannot be read. */
async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    return hasCode(error, "ENOENT") ? undefined : "";
  }
}

function isExists(error: unknown): boolean {
  // Windows says EPERM of a file that is just being deleted.
  return hasCode(error, "EEXIST") || (process.platform === "win32" && hasCode(error, "EPERM"));
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
