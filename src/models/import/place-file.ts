import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, mkdir, open, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { isDiskFull, isSystemError, throwExhaustion } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { removeFile } from "../../files/remove-file.ts";
import { replaceFile } from "../../files/replace-file.ts";
import type { Placement } from "./import-step.ts";
import { writeRefusal } from "../../files/write-refusal.ts";

export interface PlacedFile {
  readonly placement: Placement;
  /** Where it is now. */
  readonly path: string;
  /** It was not there before. */
  readonly isNew: boolean;
}

/** How the system has a file at a second path without copying it; rejects where it cannot. */
export interface FileSystem {
  readonly clone: (from: string, to: string) => Promise<void>;
  /** Windows and some file systems refuse it, as Linux does for files of others. */
  readonly link: (from: string, to: string) => Promise<void>;
}

const DISK: FileSystem = {
  clone: async (from, to) => {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
  },
  link,
};

/** Read and written at once by a copy. */
const PIECE_BYTES = 8 * 1024 * 1024;

/**
 * Has a file at another path without copying it, where the file system can; otherwise copies it, if that is wanted, or
 * leaves it where it is. Yields the bytes that each step of a copy has written.
 * @param source its real path
 * @throws ServiceError insufficient_disk or cache_not_writable when a copy cannot be written
 */
export async function* placeFile(
  source: string,
  target: string,
  wantsCopy: boolean,
  signal: AbortSignal,
  disk: FileSystem = DISK,
): AsyncGenerator<number, PlacedFile, void> {
  const known = await placementOf(source, target);
  if (known) return { placement: known, path: target, isNew: false };
  const placed = (placement: Placement): PlacedFile => ({ placement, path: target, isNew: true });
  const partial = `${target}.${randomUUID()}.partial`;
  try {
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    if (await succeeds(disk.clone(source, partial))) {
      await finish(source, partial, target);
      return placed("cloned");
    }
    if (await succeeds(disk.link(source, partial))) {
      await replaceFile(partial, target);
      return placed("linked");
    }
    if (!wantsCopy) return { placement: "in place", path: source, isNew: false };
    yield* copyPieces(source, partial, signal);
    await finish(source, partial, target);
    return placed("copied");
  } catch (error) {
    if (error instanceof ServiceError || !isSystemError(error)) throw error;
    throw unwritable(path.dirname(target), error);
  } finally {
    await removeFile(partial);
  }
}

/** How a file is had already; a clone cannot be told from a copy. */
async function placementOf(source: string, target: string): Promise<Placement | undefined> {
  const [from, to] = await Promise.all([stat(source), stat(target).catch(() => undefined)]);
  if (!from.isFile()) throw new ServiceError("path_not_allowed", `${source} is not a regular file.`);
  if (!to?.isFile()) return undefined;
  if (from.dev === to.dev && from.ino === to.ino) return "linked";
  return from.size === to.size && Math.abs(from.mtimeMs - to.mtimeMs) < 2 ? "copied" : undefined;
}

async function succeeds(action: Promise<void>): Promise<boolean> {
  try {
    await action;
    return true;
  } catch (error) {
    throwExhaustion(error);
    return false;
  }
}

async function* copyPieces(
  source: string,
  partial: string,
  signal: AbortSignal,
): AsyncGenerator<number, void> {
  await using from = await open(source, "r");
  await using to = await open(partial, "wx", 0o600);
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await from.read(buffer, 0, buffer.length);
    if (bytesRead === 0) break;
    await to.writeFile(buffer.subarray(0, bytesRead));
    yield bytesRead;
  }
  await to.sync();
}

/** Gives a copy the time of its original, by which the next import knows it, and its name. */
async function finish(source: string, partial: string, target: string): Promise<void> {
  const { atime, mtime } = await stat(source);
  await utimes(partial, atime, mtime);
  await replaceFile(partial, target);
}

function unwritable(folder: string, cause: unknown): ServiceError {
  return new ServiceError(
    isDiskFull(cause) ? "insufficient_disk" : "cache_not_writable",
    `The model cannot be put into ${folder}: ${writeRefusal(cause) ?? "the system refuses it"}.`,
    { cause },
  );
}
