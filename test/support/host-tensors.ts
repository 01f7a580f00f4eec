const TENSOR_BYTES = 336;

export interface HostTensor {
  readonly type: number;
  /** Elements in each of four dimensions, innermost first. */
  readonly ne: readonly number[];
  /** Bytes from one element to the next in each dimension; absent: they follow each other. */
  readonly nb?: readonly number[];
  readonly data: Float32Array | Uint16Array | Uint8Array | Int32Array | BigInt64Array;
}

/** Lays tensors out in a memory as ggml does, one behind the other. */
export class HostTensors {
  readonly #memory: WebAssembly.Memory;
  readonly #first: number;
  #next: number;

  /** @param first address of the first tensor */
  constructor(memory: WebAssembly.Memory, first: number) {
    this.#memory = memory;
    this.#first = first;
    this.#next = first;
  }

  /** Lets the next tensors take the places of all that were laid out. */
  clear(): void {
    this.#next = this.#first;
  }

  /** Address of so many bytes of which the first, as many as a structure may have, are zero. */
  place(length: number): number {
    const at = this.#next;
    this.#next += Math.ceil(length / 64) * 64 + 64;
    const bytes = new Uint8Array(this.#memory.buffer);
    if (this.#next > bytes.length) throw new RangeError("the operation does not fit the host's memory");
    // What lies behind a tensor must not matter.
    bytes.fill(0xff, at, this.#next).fill(0, at, at + Math.min(length, TENSOR_BYTES));
    return at;
  }

  /** Address of a tensor; {@link dataOf} says where its data went. */
  tensor({ type, ne, nb, data }: HostTensor): number {
    const at = this.place(TENSOR_BYTES);
    const place = this.place(data.byteLength);
    const view = new DataView(this.#memory.buffer);
    new Uint8Array(this.#memory.buffer).set(
      new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
      place,
    );
    view.setInt32(at, type, true);
    let stride = data.BYTES_PER_ELEMENT;
    for (let dimension = 0; dimension < 4; dimension++) {
      view.setBigInt64(at + 16 + 8 * dimension, BigInt(ne[dimension] ?? 1), true);
      view.setBigUint64(at + 48 + 8 * dimension, BigInt(nb?.[dimension] ?? stride), true);
      stride *= ne[dimension] ?? 1;
    }
    view.setBigUint64(at + 248, BigInt(place), true);
    return at;
  }

  dataOf(tensor: number): number {
    return Number(new DataView(this.#memory.buffer).getBigUint64(tensor + 248, true));
  }
}
