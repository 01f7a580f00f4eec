import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { BlobDigest } from "../repo-file.ts";

/** Large enough to keep a disk busy, small enough not to hold up the event loop. */
const READ_BYTES = 1024 * 1024;

/** Starts the hash that the hub's digest was made with. */
export function startHash(digest: BlobDigest, size: number): Hash {
  if (digest.algorithm === "sha256") return createHash("sha256");
  // A git object id covers a header before the content.
  return createHash("sha1").update(`blob ${size}\0`);
}

/**
 * Feeds the first `length` bytes of a file into a hash.
 * @returns how many there were: fewer when the file is shorter.
 */
export async function hashStart(
  hash: Hash,
  handle: FileHandle,
  length: number,
  onBytes: (hashed: number) => void,
  signal: AbortSignal,
): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, Math.max(length, 1)));
  let position = 0;
  while (position < length) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, length - position), position);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
    onBytes(position);
  }
  return position;
}
