import fs from "node:fs";
import { ServiceError, toError } from "../../errors/service-error.ts";
import type { BlobLike, EngineFiles } from "../core/platform.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";

/**
 * Opens the files of a model.
 * @param onProgress called with the fraction of all bytes that has been read, 0..1
 * @throws ServiceError model_load_failed if a file cannot be opened
 */
export function openEngineFiles(spec: EngineSpec, onProgress: (progress: number) => void): EngineFiles {
  let total = 0;
  let read = 0;
  const open = (path: string): FileBlob => {
    const blob = openFile(path, (bytes) => {
      read += bytes;
      // The header is read more than once, so the sum can pass the size.
      onProgress(Math.min(1, read / total));
    });
    total += blob.size;
    return blob;
  };
  return {
    model: spec.modelFiles.map(open),
    projector: spec.projectorFile === undefined ? undefined : open(spec.projectorFile),
    draft: spec.draft && open(spec.draft.path),
    adapters: spec.adapters.map(({ path, scale }) => ({ blob: open(path), scale })),
  };
}

/** Opens a file, which stays open until the process exits because the engine may read it at any time. */
function openFile(path: string, onRead: (bytes: number) => void): FileBlob {
  try {
    const fd = fs.openSync(path, "r");
    return new FileBlob(fd, 0, fs.fstatSync(fd).size, onRead);
  } catch (error) {
    throw new ServiceError("model_load_failed", `Cannot open ${path}: ${toError(error).message}`, {
      cause: error,
    });
  }
}

/** Bytes per chunk of {@link FileBlob.stream}. */
const STREAM_CHUNK_BYTES = 1024 * 1024;

/**
 * A range of an open file, as a Blob. Node's `fs.openAsBlob()` reports sizes of 4 GiB and more modulo 2^32, and does
 * not report progress.
 */
class FileBlob implements BlobLike {
  readonly #fd: number;
  readonly #start: number;
  readonly #onRead: (bytes: number) => void;
  readonly size: number;

  /** @param onRead called with the number of bytes after each read */
  constructor(fd: number, start: number, size: number, onRead: (bytes: number) => void) {
    this.#fd = fd;
    this.#start = start;
    this.size = size;
    this.#onRead = onRead;
  }

  slice(start = 0, end = this.size): FileBlob {
    const from = clamp(start, this.size);
    const to = Math.max(from, clamp(end, this.size));
    return new FileBlob(this.#fd, this.#start + from, to - from, this.#onRead);
  }

  /** @throws Error if the file was truncated after it was opened */
  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size);
    let filled = 0;
    while (filled < bytes.length) {
      const read = await readAt(this.#fd, bytes, filled, this.#start + filled);
      if (read === 0) throw new Error("the file was truncated while it was read");
      filled += read;
      this.#onRead(read);
    }
    return bytes.buffer;
  }

  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    let position = 0;
    return new ReadableStream({
      pull: async (controller) => {
        if (position >= this.size) return controller.close();
        const end = Math.min(position + STREAM_CHUNK_BYTES, this.size);
        controller.enqueue(new Uint8Array(await this.slice(position, end).arrayBuffer()));
        position = end;
      },
    });
  }
}

/** Resolves an index of Blob.slice(); negative indices count from the end. */
function clamp(index: number, size: number): number {
  return index < 0 ? Math.max(0, size + index) : Math.min(index, size);
}

function readAt(fd: number, bytes: Uint8Array, offset: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.read(fd, bytes, offset, bytes.length - offset, position, (error, read) =>
      error ? reject(error) : resolve(read),
    );
  });
}
