import fs from "node:fs";
import { ServiceError, toError } from "../../errors/service-error.ts";
import type { BlobLike, EngineFiles } from "../core/platform.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";

/** Opens the files of a model. @throws ServiceError model_load_failed if a file cannot be opened */
export function openEngineFiles(spec: EngineSpec): EngineFiles {
  return {
    model: spec.modelFiles.map(openFile),
    projector: spec.projectorFile === undefined ? undefined : openFile(spec.projectorFile),
    draft: spec.draft && openFile(spec.draft.path),
    adapters: spec.adapters.map(({ path, scale }) => ({ blob: openFile(path), scale })),
  };
}

/** Opens a file, which stays open until the process exits because the engine may read it at any time. */
function openFile(path: string): FileBlob {
  try {
    const fd = fs.openSync(path, "r");
    return new FileBlob(fd, 0, fs.fstatSync(fd).size);
  } catch (error) {
    throw new ServiceError("model_load_failed", `Cannot open ${path}: ${toError(error).message}`, {
      cause: error,
    });
  }
}

/** A range of an open file, as a Blob. Node's `fs.openAsBlob()` reports sizes of 4 GiB and more modulo 2^32. */
class FileBlob implements BlobLike {
  readonly #fd: number;
  readonly #start: number;
  readonly size: number;

  constructor(fd: number, start: number, size: number) {
    this.#fd = fd;
    this.#start = start;
    this.size = size;
  }

  slice(start = 0, end = this.size): FileBlob {
    const from = clamp(start, this.size);
    const to = Math.max(from, clamp(end, this.size));
    return new FileBlob(this.#fd, this.#start + from, to - from);
  }

  /** @throws Error if the file was truncated after it was opened */
  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size);
    let filled = 0;
    while (filled < bytes.length) {
      const read = await readAt(this.#fd, bytes, filled, this.#start + filled);
      if (read === 0) throw new Error("the file was truncated while it was read");
      filled += read;
    }
    return bytes.buffer;
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
