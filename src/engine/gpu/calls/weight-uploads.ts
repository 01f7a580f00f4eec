/** Where the kernels keep what they say of a tensor that is loaded (wasm/kernels/gpu-upload.h). */
interface UploadCells {
  /** uint32: 1 when the script gives the GPU what it reads of a file. */
  readonly gpuUploads: number;
  /** uint64: where the tensor would be read to; 0: none is. */
  readonly uploadFrom: number;
  /** uint64: how much of it the GPU has been given. */
  readonly uploadedBytes: number;
}

interface UploadOptions {
  readonly cells: UploadCells;
  /** The heap as it is now. */
  readonly words: () => Uint32Array;
}

interface UploadQueue {
  writeBuffer(buffer: object, at: number, data: Uint8Array, offset: number, size: number): void;
  onSubmittedWorkDone(): Promise<unknown>;
}

export interface WeightUploads {
  /** A GPU is used: the kernels may offer tensors. */
  begin(): void;
  /** True for the write of a tensor that has not been read yet: it is noted, and not done. */
  note(queue: UploadQueue, buffer: object, offset: number, data: number, size: number): boolean;
  /**
   * Gives the GPU a piece of a file that has been read for the heap.
   * @param at where in the heap it would be
   * @returns how many bytes of it the GPU has; the rest belongs into the heap
   */
  send(piece: Uint8Array, at: number): Promise<number>;
}

/**
 * Gives a GPU the weights of a model as they are read, piece by piece, each of which waits for the one before it: neither
 * the heap nor Dawn ever has a whole tensor.
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
        // What is left of a tensor comes from the heap: its place is not that of the next one.
        destination = undefined;
        return false;
      }
      destination = { queue, buffer, offset, size };
      return true;
    },
    async send(piece, at) {
      const from = number(cells.uploadFrom);
      const to = destination;
      if (from === 0 || to === undefined) return 0;
      const done = number(cells.uploadedBytes);
      const size = Math.min(piece.length & WHOLE_WORDS, to.size - done);
      if (at !== from + done || size <= 0) return 0;
      await written;
      to.queue.writeBuffer(to.buffer, to.offset + done, piece, 0, size);
      written = to.queue.onSubmittedWorkDone();
      // Whoever waits next hears of it.
      written.catch(() => {});
      setNumber(cells.uploadedBytes, done + size);
      if (done + size === to.size) destination = undefined;
      return size;
    },
  };
}
