/** Addresses of the memory cells that describe the tensor being loaded (wasm/kernels/gpu-upload.h). */
interface UploadCells {
  /** uint32: 1 when the script uploads tensors while it reads a file. */
  readonly gpuUploads: number;
  /** uint64: heap address to which the tensor would be read; 0: no tensor is being loaded. */
  readonly uploadFrom: number;
  /** uint64: bytes of it that have been uploaded. */
  readonly uploadedBytes: number;
}

interface UploadOptions {
  readonly cells: UploadCells;
  readonly words: () => Uint32Array;
}

interface UploadQueue {
  writeBuffer(buffer: object, at: number, data: Uint8Array, offset: number, size: number): void;
  onSubmittedWorkDone(): Promise<unknown>;
}

export interface WeightUploads {
  /** Tells the kernels that a GPU is used, so that they offer tensors. */
  begin(): void;
  /** Returns true for the write of a tensor that has not been read yet: its destination is recorded, and nothing is written. */
  note(queue: UploadQueue, buffer: object, offset: number, data: number, size: number): boolean;
  /**
   * Uploads a chunk of a file that was read for the heap.
   * @param at heap address for which it was read
   * @returns bytes that were uploaded; the rest belongs into the heap
   */
  send(chunk: Uint8Array, at: number): Promise<number>;
}

/**
 * Uploads the weights of a model to a GPU while they are read. Each chunk waits for the one before it, so neither the heap
 * nor Dawn ever has a complete tensor.
 *
 * Part of llama.cpp's script in a worker, which gets this function as text: it must not refer to anything outside of it.
 */
export function openWeightUploads({ cells, words }: UploadOptions): WeightUploads {
  const WORD = 4;
  const HIGH_WORD = 2 ** 32;
  /** WebGPU writes whole words. */
  const WHOLE_WORDS = -WORD;

  interface Destination {
    readonly queue: UploadQueue;
    readonly buffer: object;
    readonly offset: number;
    readonly size: number;
  }
  let destination: Destination | undefined;
  let written: Promise<unknown> | undefined;

  const number = (cell: number): number => {
    const heap = words();
    return heap[cell / WORD]! + heap[cell / WORD + 1]! * HIGH_WORD;
  };
  const setNumber = (cell: number, value: number): void =>
    words().set([value % HIGH_WORD, Math.floor(value / HIGH_WORD)], cell / WORD);

  return {
    begin() {
      words()[cells.gpuUploads / WORD] = 1;
    },
    note(queue, buffer, offset, data, size) {
      if (data === 0 || number(cells.uploadFrom) !== data) {
        // The remainder of a tensor comes from the heap, so its destination must not be used for the next tensor.
        destination = undefined;
        return false;
      }
      destination = { queue, buffer, offset, size };
      return true;
    },
    async send(chunk, at) {
      const from = number(cells.uploadFrom);
      const to = destination;
      if (from === 0 || to === undefined) return 0;
      const done = number(cells.uploadedBytes);
      const size = Math.min(chunk.length & WHOLE_WORDS, to.size - done);
      if (at !== from + done || size <= 0) return 0;
      await written;
      to.queue.writeBuffer(to.buffer, to.offset + done, chunk, 0, size);
      written = to.queue.onSubmittedWorkDone();
      // The next wait reports the failure.
      written.catch(() => {});
      setNumber(cells.uploadedBytes, done + size);
      if (done + size === to.size) destination = undefined;
      return size;
    },
  };
}
