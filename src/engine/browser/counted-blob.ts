import type { BlobLike } from "../core/platform.ts";

/** A file of a page that tells how many bytes of it have been read. */
export class CountedBlob implements BlobLike {
  readonly #blob: Blob;
  readonly #onRead: (bytes: number) => void;

  constructor(blob: Blob, onRead: (bytes: number) => void) {
    this.#blob = blob;
    this.#onRead = onRead;
  }

  get size(): number {
    return this.#blob.size;
  }

  slice(start?: number, end?: number): CountedBlob {
    return new CountedBlob(this.#blob.slice(start, end), this.#onRead);
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await this.#blob.arrayBuffer();
    this.#onRead(bytes.byteLength);
    return bytes;
  }

  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const count = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (chunk, controller) => {
        this.#onRead(chunk.byteLength);
        controller.enqueue(chunk);
      },
    });
    return this.#blob.stream().pipeThrough(count);
  }
}
