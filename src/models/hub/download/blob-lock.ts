import type { FolderLock, Ownership } from "../../../files/folder-lock.ts";
import type { Sleep } from "../remote/retry.ts";

/** How often a waiter looks whether the owner has finished or is gone. */
const LOOK_MS = 500;

export interface BlobLockOptions {
  readonly folder: FolderLock;
  readonly sleep: Sleep;
  readonly signal: AbortSignal;
  /**
   * Called at every look while another owner works; when it returns true the wait is over without a lock, because
   * there is nothing left to do.
   */
  readonly onWait: () => Promise<boolean>;
}

/** Waits for the right to write one blob, which one process has at a time. */
export async function acquireBlobLock(
  lockPath: string,
  { folder, sleep, signal, onWait }: BlobLockOptions,
): Promise<Ownership | undefined> {
  for (;;) {
    signal.throwIfAborted();
    const lock = await folder.own(lockPath);
    if (lock) return lock;
    if (await onWait()) return undefined;
    await sleep(LOOK_MS, signal);
  }
}
