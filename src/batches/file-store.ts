import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { ServiceError } from "../errors/service-error.ts";
import {
  listNames,
  makePrivateFolder,
  removeFile,
  replaceFile,
  syncFolder,
} from "../files/file-operations.ts";
import type { FileContents } from "./batch-store.ts";

const PART = ".part";

/** Content of files by id, in a folder. A file exists completely or not at all, whenever the process ends. */
export class FileFolder implements FileContents {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<FileFolder> {
    await makePrivateFolder(folder);
    return new FileFolder(folder);
  }

  async write(id: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number> {
    const part = this.#path(id) + PART;
    const handle = await open(part, "w", 0o600);
    try {
      await handle.writeFile(chunks);
      const { size } = await handle.stat();
      await handle.sync();
      await handle.close();
      await replaceFile(part, this.#path(id));
      await syncFolder(this.#folder);
      return size;
    } catch (error) {
      await handle.close();
      await removeFile(part);
      throw error;
    }
  }

  async check(id: string, bytes: number): Promise<void> {
    let cause: unknown;
    try {
      await using handle = await open(this.#path(id), "r");
      // A truncated file would leave the client waiting for the rest of its Content-Length.
      if ((await handle.stat()).size === bytes) return;
    } catch (error) {
      cause = error;
    }
    throw new ServiceError("file_not_found", "The file's content is not there, or no longer.", { cause });
  }

  /** Streams the bytes from `start` up to and including `end`. */
  read(id: string, start = 0, end = Number.POSITIVE_INFINITY): Readable {
    return createReadStream(this.#path(id), { start, end });
  }

  stream(id: string, start: number, end: number): ReadableStream<Uint8Array> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node types its web streams differently
    return Readable.toWeb(this.read(id, start, end)) as ReadableStream<Uint8Array>;
  }

  async text(id: string, start: number, length: number): Promise<string> {
    await using handle = await open(this.#path(id), "r");
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, start);
    return buffer.toString("utf8", 0, bytesRead);
  }

  async remove(id: string): Promise<void> {
    await removeFile(this.#path(id));
  }

  /** Removes all other files, such as those that a killed process left. */
  async removeAllExcept(ids: readonly string[]): Promise<void> {
    const knownIds = new Set(ids);
    const unknownNames = (await listNames(this.#folder)).filter((name) => !knownIds.has(name));
    for (const name of unknownNames) await removeFile(path.join(this.#folder, name));
  }

  #path(id: string): string {
    return path.join(this.#folder, id);
  }
}
