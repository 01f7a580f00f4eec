import "../older-browsers.ts";
import { sha256 as createSha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { pause } from "../../async/promises.ts";
import { ServiceError, toError } from "../../errors/service-error.ts";
import { type BlobMessage, type BlobTask, isQuotaExceeded, noSpaceError, openBlobs } from "./blob-folder.ts";

/**
 * Worker that writes one file into the browser's storage. Only workers have synchronous file handles; other writes copy
 * the whole file first.
 */

const READ_BYTES = 4 * 1024 * 1024;
/** Bytes that a crash of the browser may lose. */
const FLUSH_BYTES = 64 * 1024 * 1024;
/** Attempts without progress after which a download fails. */
const MAX_TRIES = 5;
const FIRST_RETRY_MS = 500;

function send(message: BlobMessage): void {
  postMessage(message);
}

function report(bytes: number): void {
  send({ type: "progress", bytes });
}

/** Methods of file handles that TypeScript's library for pages lacks. */
interface WorkerFileHandle {
  createSyncAccessHandle(): Promise<SyncAccessHandle>;
  move(name: string): Promise<void>;
}

/** Offsets and sizes in bytes. */
interface SyncAccessHandle {
  read(target: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

function asWorkerHandle(file: FileSystemFileHandle): WorkerFileHandle {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is a worker
  return file as unknown as WorkerFileHandle;
}

/** An incomplete file and the hash of its content. */
class GrowingFile implements Disposable {
  readonly #access: SyncAccessHandle;
  #hash = createSha256.create();
  #flushedAt = 0;
  size = 0;

  private constructor(access: SyncAccessHandle) {
    this.#access = access;
  }

  /** Opens a file and hashes its content. */
  static async open(file: FileSystemFileHandle, onRead: (bytes: number) => void): Promise<GrowingFile> {
    const growing = new GrowingFile(await asWorkerHandle(file).createSyncAccessHandle());
    const chunk = new Uint8Array(READ_BYTES);
    for (;;) {
      const read = growing.#access.read(chunk, { at: growing.size });
      if (read === 0) return growing;
      growing.#hash.update(chunk.subarray(0, read));
      growing.size += read;
      onRead(growing.size);
    }
  }

  append(bytes: Uint8Array<ArrayBuffer>): void {
    for (let done = 0; done < bytes.length;) {
      const written = this.#access.write(bytes.subarray(done), { at: this.size + done });
      if (written === 0) throw new DOMException("nothing was written", "QuotaExceededError");
      done += written;
    }
    this.#hash.update(bytes);
    this.size += bytes.length;
    if (this.size - this.#flushedAt < FLUSH_BYTES) return;
    this.#access.flush();
    this.#flushedAt = this.size;
  }

  clear(): void {
    this.#access.truncate(0);
    this.#hash = createSha256.create();
    this.#flushedAt = 0;
    this.size = 0;
  }

  /** SHA-256 of the whole file, in hexadecimal. */
  digest(): string {
    return bytesToHex(this.#hash.clone().digest());
  }

  [Symbol.dispose](): void {
    this.#access.flush();
    this.#access.close();
  }
}

async function download(task: Extract<BlobTask, { type: "download" }>): Promise<string> {
  const { sha256, size, name } = task;
  const blobs = await openBlobs();
  const part = await blobs.getFileHandle(`${sha256}.part`, { create: true });
  {
    using file = await GrowingFile.open(part, report);
    if (file.size > size) file.clear();
    let failures = 0;
    while (file.size < size) {
      const before = file.size;
      try {
        await receive(task, file);
      } catch (error) {
        if (error instanceof ServiceError || isQuotaExceeded(error)) throw error;
        failures = file.size > before ? 1 : failures + 1;
        if (failures >= MAX_TRIES) throw interruptedError(name, error);
        await pause(FIRST_RETRY_MS * 2 ** failures);
      }
    }
    if (file.size !== size || file.digest() !== sha256) {
      file.clear();
      throw new ServiceError(
        "checksum_mismatch",
        `${name} does not have the SHA-256 it should have: it was damaged on the way, or the server sent another file. Download it again.`,
      );
    }
  }
  await move(part, sha256);
  return sha256;
}

/** Requests the missing part of a file and appends it. */
async function receive(
  { url, headers, name }: Extract<BlobTask, { type: "download" }>,
  file: GrowingFile,
): Promise<void> {
  const range = file.size > 0 && { range: `bytes=${file.size}-` };
  // The HTTP cache would store the file a second time.
  const answer = await fetch(url, { headers: { ...headers, ...range }, cache: "no-store" });
  if (answer.status === 200) file.clear();
  else if (answer.status !== 206) {
    // A restarting server may answer 503, which is retried.
    if (answer.status >= 500) throw new Error(`the server answered with status ${answer.status}`);
    throw new ServiceError(
      answer.status === 404 ? "model_file_not_found" : "download_failed",
      `${name} cannot be downloaded: the server answered with status ${answer.status}.`,
    );
  }
  const reader = answer.body?.getReader();
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return;
    file.append(new Uint8Array(chunk.value));
    report(file.size);
  }
}

async function copy({ blob, id }: Extract<BlobTask, { type: "copy" }>): Promise<string> {
  const blobs = await openBlobs();
  const partName = `${id}.part`;
  const part = await blobs.getFileHandle(partName, { create: true });
  try {
    let sha256: string;
    {
      using file = await GrowingFile.open(part, () => {});
      for (let at = 0; at < blob.size; at += READ_BYTES) {
        file.append(new Uint8Array(await blob.slice(at, at + READ_BYTES).arrayBuffer()));
        report(file.size);
      }
      sha256 = file.digest();
    }
    await move(part, sha256);
    return sha256;
  } catch (error) {
    await blobs.removeEntry(partName);
    throw error;
  }
}

async function move(file: FileSystemFileHandle, name: string): Promise<void> {
  await asWorkerHandle(file).move(name);
}

function interruptedError(name: string, cause: unknown): ServiceError {
  return new ServiceError(
    "download_failed",
    `The download of ${name} was interrupted: ${toError(cause).message}. What has arrived is kept; try again to continue.`,
    { cause },
  );
}

function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (isQuotaExceeded(error)) return noSpaceError(error);
  if (error instanceof DOMException && error.name === "NoModificationAllowedError") {
    return new ServiceError("model_busy", "Another tab is storing this file. Try again when it is done.", {
      cause: error,
    });
  }
  return ServiceError.from(toError(error));
}

globalThis.addEventListener("message", ({ data }: MessageEvent<BlobTask>) => {
  void (data.type === "download" ? download(data) : copy(data)).then(
    (sha256) => send({ type: "done", sha256 }),
    (error: unknown) => {
      const { code, message } = toServiceError(error);
      send({ type: "failed", code, message });
    },
  );
});
