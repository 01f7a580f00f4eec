import { type Hash, createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { isSystemError } from "../../../errors/service-error.ts";
import { removeFile, replaceFile } from "../../../files/file-operations.ts";
import type { RepoFile, BlobDigest } from "../hub-types.ts";

/** Large enough to keep a disk busy, small enough not to block the event loop. */
const READ_BYTES = 1024 * 1024;

/** Missing on Windows, where creating symlinks needs elevated rights. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;

/**
 * An unfinished download on disk, with a running hash of its content. Writes go to explicit positions, so the hash
 * always matches the file. Only the holder of the blob's lock may open it.
 */
export class PartFile implements AsyncDisposable {
  readonly #path: string;
  readonly #file: RepoFile;
  readonly #handle: FileHandle;
  #hash: Hash;
  #received = 0;

  private constructor(partPath: string, file: RepoFile, handle: FileHandle) {
    this.#path = partPath;
    this.#file = file;
    this.#handle = handle;
    this.#hash = startHash(file.digest, file.size);
  }

  /** Opens the part of an earlier download, or a new file, and hashes its content. */
  static async open(
    partPath: string,
    file: RepoFile,
    onBytes: (received: number) => void,
    signal: AbortSignal,
  ): Promise<PartFile> {
    await mkdir(path.dirname(partPath), { recursive: true });
    const part = new PartFile(partPath, file, await openPart(partPath));
    try {
      const { size } = await part.#handle.stat();
      if (size > file.size) await part.restart();
      else part.#received = await hashStart(part.#hash, part.#handle, size, onBytes, signal);
      return part;
    } catch (error) {
      await part[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Bytes on disk, which are all hashed. */
  get received(): number {
    return this.#received;
  }

  get complete(): boolean {
    return this.#received === this.#file.size;
  }

  /** Appends a chunk, which must not extend past the end of the file. */
  async append(chunk: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < chunk.length) {
      const { bytesWritten } = await this.#handle.write(
        chunk,
        offset,
        chunk.length - offset,
        this.#received + offset,
      );
      offset += bytesWritten;
    }
    this.#hash.update(chunk);
    this.#received += chunk.length;
  }

  async restart(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = startHash(this.#file.digest, this.#file.size);
    this.#received = 0;
  }

  /** True if the content matches the hub's digest; to be called once, after the last byte. */
  async matches(): Promise<boolean> {
    const { size } = await this.#handle.stat();
    return size === this.#file.size && this.#hash.digest("hex") === this.#file.digest.hex;
  }

  /** Flushes the content to disk and renames it to its final name. */
  async moveTo(target: string): Promise<void> {
    await this.#handle.sync();
    await this.#handle.close();
    await replaceFile(this.#path, target);
  }

  async discard(): Promise<void> {
    await this.#handle.close();
    await removeFile(this.#path);
  }

  /** Closes the file, unless it is closed, and keeps it for the next attempt. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/** Opens a file, and replaces it if it is a symlink or a hard link. */
async function openPart(partPath: string): Promise<FileHandle> {
  const flags = constants.O_RDWR | constants.O_CREAT | NO_FOLLOW;
  const handle = await open(partPath, flags).catch((error: unknown) => {
    if (!(isSystemError(error) && error.code === "ELOOP")) throw error;
  });
  const info = await handle?.stat();
  if (handle && info?.isFile() && info.nlink === 1) return handle;
  await handle?.close();
  await removeFile(partPath);
  return open(partPath, flags | constants.O_EXCL);
}

/** Starts a hash with the algorithm of the hub's digest. */
function startHash(digest: BlobDigest, size: number): Hash {
  if (digest.algorithm === "sha256") return createHash("sha256");
  // A git object id covers a header before the content.
  return createHash("sha1").update(`blob ${size}\0`);
}

/** Feeds the first `length` bytes of a file into a hash; returns their number, fewer if the file is shorter. */
async function hashStart(
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
