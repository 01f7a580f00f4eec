import type { Dirent } from "node:fs";
import { chmod, mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import {
  codeOrReason,
  exhaustedResource,
  isDiskFull,
  isSystemError,
  rethrowExhaustion,
  ServiceError,
} from "../errors/service-error.ts";

/** Renames a file, replacing any existing one; waits while another program has one of them open. */
export async function replaceFile(from: string, to: string): Promise<void> {
  await retryWhileInUse(async () => await rename(from, to));
}

/** Removes a file, if it exists; waits while another program has it open. */
export async function removeFile(file: string): Promise<void> {
  await retryWhileInUse(async () => await rm(file, { force: true }));
}

/** Windows' errors for a file that another program, usually a virus scanner, has open. */
const IN_USE_CODES = new Set(["EPERM", "EACCES", "EBUSY"]);
/** Pauses between attempts: scanners release a file after some tenths of a second; in total a little over 2 s. */
const WAITS_MS = [10, 30, 100, 300, 700, 1000];

interface InUseOptions {
  readonly platform?: NodeJS.Platform;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * Renames or removes a file. On Windows, retries for a while if another program has the file open.
 * @throws the change's last error
 */
export async function retryWhileInUse(
  change: () => Promise<void>,
  { platform = process.platform, sleep = delay }: InUseOptions = {},
): Promise<void> {
  const waits = platform === "win32" ? WAITS_MS : [];
  for (const wait of waits) {
    try {
      return await change();
    } catch (error) {
      if (!(isSystemError(error) && IN_USE_CODES.has(error.code))) throw error;
      await sleep(wait);
    }
  }
  return await change();
}

/**
 * Makes the names in a folder durable, so that a file renamed into it survives a power failure. Windows does that by
 * itself.
 */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  await using handle = await open(folder, "r");
  // Some network file systems refuse this for folders; nothing more can be done then.
  await handle.sync().catch((error: unknown) => {
    if (!(isSystemError(error) && error.code === "EINVAL")) throw error;
  });
}

/** Lists the names in a folder; empty if it does not exist. */
export async function listNames(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(rethrowExhaustion)) ?? [];
}

/** Lists the entries of a folder; empty if it does not exist. */
export async function listEntries(folder: string): Promise<Dirent[]> {
  return (await readdir(folder, { withFileTypes: true }).catch(rethrowExhaustion)) ?? [];
}

/** Creates a folder that other accounts cannot enter, or restricts an existing one, regardless of the umask. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await setMode(folder, 0o700);
}

/**
 * Creates the empty file of a database, unreadable for other accounts, or restricts the files of an existing one. SQLite
 * gives files that it adds the same permissions. Failures are ignored, because SQLite reports them.
 */
export async function makePrivateDatabase(file: string): Promise<void> {
  const handle = await open(file, "a", 0o600).catch(() => undefined);
  await handle?.close();
  for (const suffix of ["", "-wal", "-shm"]) await setMode(file + suffix, 0o600);
}

/** Sets permissions, if the file exists and its file system has them. */
async function setMode(name: string, mode: number): Promise<void> {
  await chmod(name, mode).catch(() => undefined);
}

/** Disk space that stays free for other uses: logs, the system, a browser's cache. */
export const RESERVE_BYTES = 256 * 1024 * 1024;

/** Bytes that an unprivileged process may still write in a folder; undefined if unknown. */
export type FreeSpace = (folder: string) => Promise<number | undefined>;

export const freeSpace: FreeSpace = async (folder) => {
  try {
    const { bavail, bsize } = await statfs(folder);
    // Some network file systems report nothing at all.
    return bsize === 0 ? undefined : bavail * bsize;
  } catch {
    return undefined;
  }
};

const WRITE_REFUSALS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "this user's disk quota is used up",
  EROFS: "it is read-only",
  EACCES: "this user is not allowed to write there",
  EPERM: "this user is not allowed to write there",
  ENOTDIR: "a part of its path is not a folder",
  EEXIST: "a part of its path is not a folder",
  EIO: "the disk reports an error",
};

/** Explains why a folder is not writable, to follow its name; undefined for an error that is not the system's. */
export function writeRefusal(error: unknown): string | undefined {
  if (!isSystemError(error)) return undefined;
  return (
    WRITE_REFUSALS[error.code] ?? exhaustedResource(error) ?? `the system refuses it (${codeOrReason(error)})`
  );
}

/**
 * Converts the system's refusal to write to an error for the client; returns other errors as they are.
 * @param problem what is impossible, a sentence to which the reason is added
 */
export function toWriteError(error: unknown, problem: string): unknown {
  const refusal = error instanceof ServiceError ? undefined : writeRefusal(error);
  if (refusal === undefined) return error;
  const code = isDiskFull(error) ? "insufficient_disk" : "cache_not_writable";
  return new ServiceError(code, `${problem}: ${refusal}.`, { cause: error });
}
