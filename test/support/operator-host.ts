import { hostMemory, linkHost } from "./kernel-host-module.ts";
import { type HostTensor, HostTensors } from "./host-tensors.ts";

/** 64 MiB. */
const PAGES = 1024;
/** The kernels' stack lies below, tensors above. */
const FIRST_TENSOR = 1024 * 1024;

/** As in ggml.h. */
export const TENSOR = { f32: 0, f16: 1, q4_0: 2, q8_0: 8, i32: 26, i64: 27 } as const;

interface Operation {
  /** Number of the operator in enum ggml_op. */
  readonly op: number;
  /** op_params, of 32 bits each. */
  readonly parameters: Int32Array;
  readonly sources: readonly (HostTensor | undefined)[];
  /** Shape of the result, in F32. */
  readonly ne: readonly number[];
  /** Tensor that is written to in place of the operator's own, such as a cache in another type. */
  readonly result?: HostTensor;
  readonly threads?: number;
  /** Bytes of work buffer for all threads; absent: none. */
  readonly workBytes?: number;
}

interface PreparedOperation {
  /** False when the kernels leave the operator to llama.cpp. */
  run(): boolean;
  read(): Float32Array;
  /** The same as bytes. */
  readBytes(): Uint8Array;
}

/** Runs operators of one node as our kernel of graphs asks for them. */
export class OperatorHost {
  readonly #memory: WebAssembly.Memory;
  readonly #operator: (parameters: bigint, node: bigint) => number;
  readonly #tensors: HostTensors;

  private constructor(memory: WebAssembly.Memory, operator: (parameters: bigint, node: bigint) => number) {
    this.#memory = memory;
    this.#tensors = new HostTensors(memory, FIRST_TENSOR);
    this.#operator = operator;
  }

  static async start(): Promise<OperatorHost> {
    const memory = hostMemory(PAGES);
    const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), { env: { memory } });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const operator = instance.exports["operator"] as (parameters: bigint, node: bigint) => number;
    return new OperatorHost(memory, operator);
  }

  /** Writes what llama.cpp has at an address of its own. */
  put(address: number, data: Uint16Array): void {
    new Uint16Array(this.#memory.buffer, address, data.length).set(data);
  }

  /** The result, or undefined when the kernels leave the operator to llama.cpp. */
  run(operation: Operation): Float32Array | undefined {
    const prepared = this.prepare(operation);
    return prepared.run() ? prepared.read() : undefined;
  }

  /** Lays an operator out in the host's memory, for one or more runs. The next one that is prepared takes its place. */
  prepare({ op, parameters, sources, ne, threads = 1, workBytes = 0, result }: Operation): PreparedOperation {
    const tensors = this.#tensors;
    tensors.clear();
    const count = ne.reduce((product, each) => product * each, 1);
    const target = result ?? { type: TENSOR.f32, ne, data: new Float32Array(count).fill(Number.NaN) };
    const node = tensors.tensor(target);
    const view = new DataView(this.#memory.buffer);
    view.setInt32(node + 80, op, true);
    for (const [at, value] of parameters.entries()) view.setInt32(node + 84 + 4 * at, value, true);
    for (const [at, source] of sources.entries()) {
      if (source) view.setBigUint64(node + 152 + 8 * at, BigInt(tensors.tensor(source)), true);
    }
    const work = tensors.place(workBytes);
    const threadsAt = Array.from({ length: threads }, (_, thread) => {
      const at = tensors.place(64);
      view.setInt32(at, thread, true);
      view.setInt32(at + 4, threads, true);
      view.setBigUint64(at + 8, BigInt(workBytes), true);
      view.setBigUint64(at + 16, BigInt(work), true);
      return BigInt(at);
    });
    const resultAt = tensors.dataOf(node);
    return {
      run: () => threadsAt.map((at) => this.#operator(at, BigInt(node))).every((done) => done === 1),
      read: () => new Float32Array(this.#memory.buffer, resultAt, count).slice(),
      readBytes: () => new Uint8Array(this.#memory.buffer, resultAt, target.data.byteLength).slice(),
    };
  }
}
