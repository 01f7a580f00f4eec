import type { DotMachine } from "./dot-machines.ts";
import { DOT_COUNT, FALLBACK_MARK, hostMemory, KERNELS, linkHost, STACK_TOP } from "./kernel-host-module.ts";

/** 64 MiB, plenty for a test. */
const DEFAULT_PAGES = 1024;
/** Structures are smaller than this and start as zeros; the work buffer need not. */
const MAX_ZEROED = 1024;
/** ggml's numbers of types and operators, and of what a buffer is for. */
const TYPE_F32 = 0;
const TYPE_I32 = 26;
const OP = { product: 29, view: 37, lookUp: 40 } as const;
const FOR_WEIGHTS = 1;

export interface MatrixProblem {
  readonly type: number;
  /** Weights row by row, as they lie in a GGUF. */
  readonly weights: Uint8Array;
  readonly rows: number;
  /** Columns of activations, each `k` long. */
  readonly activations: Float32Array;
  readonly k: number;
  /** Matrices and vectors of a batch, as attention has them: `heads` sets of columns share `matrices` of weights. */
  readonly matrices?: number;
  readonly heads?: number;
  /** Such batches, one after the other, as attention has them where each slot has a KV cache of its own. */
  readonly slots?: number;
  /** Bytes of work buffer; plenty when absent. */
  readonly workSize?: number;
  /** The weights belong to a model that has been loaded for so many backends: the kernels may repack them. */
  readonly backends?: number | undefined;
}

interface MatrixResult {
  /** [slot][head][column][row] */
  readonly values: Float32Array;
  /** True when the kernel left the operator to llama.cpp. */
  readonly fellBack: boolean;
  /** How many dot products of another machine stood in for this one's. */
  readonly dots: number;
}

interface HostOptions {
  /** The kernels' object file. */
  readonly object?: URL;
  /** Size of the memory, in pages of 64 KiB. */
  readonly pages?: number;
  /** Address from which on operators lie; what lies below is not touched. */
  readonly from?: number;
  /** Another machine whose dot product of bytes is to stand in for this one's. */
  readonly machine?: DotMachine | undefined;
}

/** An operator that lies ready in the host's memory. The next one that is prepared takes its place. */
interface PreparedProblem {
  run(): void;
  read(): MatrixResult;
  /** The weights as they lie now. */
  weights(): Uint8Array;
  /** Announces the product once more, as each context of a model does. */
  reserve(): void;
  /** Announces a graph that uses the weights otherwise than as a product. */
  planView(): void;
  /**
   * Plans and runs a look-up of rows, which fills the results with the bytes that the dequantizer was given, and at
   * most as many of each as a row has weights.
   */
  lookUp(rows: readonly number[]): Uint8Array[];
}

/** The kernels in a module of their own: runs operators on memory laid out as ggml lays it out. */
export class KernelHost {
  readonly #memory: WebAssembly.Memory;
  readonly #exports: Record<string, (...args: (bigint | number)[]) => void>;

  readonly #from: number;

  private constructor(
    memory: WebAssembly.Memory,
    exports: Record<string, (...args: (bigint | number)[]) => void>,
    from: number,
  ) {
    this.#from = from;
    this.#memory = memory;
    this.#exports = exports;
  }

  static async start({
    object = KERNELS,
    pages = DEFAULT_PAGES,
    from = STACK_TOP,
    machine,
  }: HostOptions = {}): Promise<KernelHost> {
    const bytes = linkHost(pages, false, object, machine);
    const memory = hostMemory(pages);
    const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
    return new KernelHost(
      memory,
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      instance.exports as Record<string, (...args: (bigint | number)[]) => void>,
      from,
    );
  }

  multiply(problem: MatrixProblem): MatrixResult {
    const prepared = this.prepare(problem);
    prepared.run();
    return prepared.read();
  }

  /** One of {@link VEC_DOTS}: `n` weights times activations, both as blocks. */
  vecDot(kernel: string, n: number, weights: Uint8Array, activations: Uint8Array): number {
    const [result, x] = [STACK_TOP, STACK_TOP + 64];
    const y = x + Math.ceil(weights.length / 64) * 64;
    const bytes = new Uint8Array(this.#memory.buffer);
    bytes.set(weights, x);
    bytes.set(activations, y);
    this.#exports[kernel]!(n, BigInt(result), 0n, BigInt(x), 0n, BigInt(y), 0n, 1);
    return new DataView(this.#memory.buffer).getFloat32(result, true);
  }

  prepare(problem: MatrixProblem): PreparedProblem {
    const { k, rows, matrices = 1, heads = 1, slots = 1 } = problem;
    const columns = problem.activations.length / k / heads / slots;
    const view = new DataView(this.#memory.buffer);
    const bytes = new Uint8Array(this.#memory.buffer);
    bytes.fill(0, 0, STACK_TOP);
    let next = this.#from;
    const place = (length: number): number => {
      const at = next;
      next += Math.ceil(length / 64) * 64 + 64;
      if (next > bytes.length) throw new RangeError("the problem does not fit the host's memory");
      bytes.fill(0, at, Math.min(next, at + MAX_ZEROED));
      return at;
    };
    const weights = place(problem.weights.length);
    bytes.set(problem.weights, weights);
    const activations = place(problem.activations.byteLength);
    new Float32Array(this.#memory.buffer, activations, problem.activations.length).set(problem.activations);
    const values = rows * columns * heads * slots;
    const result = place(4 * values);
    bytes.fill(0xff, result, result + 4 * values);
    const workSize = problem.workSize ?? 16 * 1024 * 1024;
    const work = place(workSize);

    const tensor = (
      weightType: number,
      ne: number[],
      elementBytes: number,
      rowBytes: number,
      data: number,
    ): number => {
      const at = place(336);
      const nb = [elementBytes, rowBytes, rowBytes * ne[1]!, rowBytes * ne[1]! * ne[2]!];
      view.setInt32(at, weightType, true);
      for (const [index, count] of ne.entries()) view.setBigInt64(at + 16 + 8 * index, BigInt(count), true);
      for (const [index, stride] of nb.entries())
        view.setBigUint64(at + 48 + 8 * index, BigInt(stride), true);
      view.setBigUint64(at + 248, BigInt(data), true);
      return at;
    };
    const rowBytes = problem.weights.length / rows / matrices / slots;
    const elementBytes = problem.type === 0 ? 4 : problem.type === 1 || problem.type === 30 ? 2 : rowBytes;
    const w = tensor(problem.type, [k, rows, matrices, slots], elementBytes, rowBytes, weights);
    const x = tensor(TYPE_F32, [k, columns, heads, slots], 4, 4 * k, activations);
    const out = tensor(TYPE_F32, [rows, columns, heads, slots], 4, 4 * rows, result);
    view.setBigUint64(out + 152, BigInt(w), true);
    view.setBigUint64(out + 160, BigInt(x), true);

    view.setInt32(out + 80, OP.product, true);

    const pool = place(320);
    view.setInt32(pool + 104, 1, true); // threads
    const parameters = place(64);
    view.setBigUint64(parameters + 24, BigInt(pool), true);
    view.setInt32(parameters, 0, true);
    view.setInt32(parameters + 4, 1, true);
    view.setBigUint64(parameters + 8, BigInt(workSize), true);
    view.setBigUint64(parameters + 16, BigInt(work), true);
    view.setInt32(FALLBACK_MARK, 0, true);
    const [graph, node, plan] = [place(64), place(8), place(64)];
    view.setInt32(graph + 4, 1, true);
    view.setBigUint64(graph + 16, BigInt(node), true);
    view.setBigUint64(node, BigInt(out), true);
    const [buffer, scheduler] = [place(128), place(16)];
    view.setInt32(buffer + 112, problem.backends === undefined ? 0 : FOR_WEIGHTS, true);
    view.setBigUint64(w + 8, BigInt(buffer), true);
    view.setInt32(scheduler + 4, problem.backends ?? 1, true);
    const reserve = (): void => {
      view.setBigUint64(node, BigInt(out), true);
      this.#exports["reserve"]!(BigInt(scheduler), BigInt(graph));
    };
    reserve();
    const planned = (tensorAt: number): void => {
      view.setBigUint64(node, BigInt(tensorAt), true);
      this.#exports["plan"]!(BigInt(plan), BigInt(graph), 1, 0n);
    };
    return {
      run: () => this.#exports["mul_mat"]!(BigInt(parameters), BigInt(out)),
      read: () => ({
        values: new Float32Array(this.#memory.buffer, result, values).slice(),
        fellBack: view.getInt32(FALLBACK_MARK, true) === 1,
        dots: view.getInt32(DOT_COUNT, true),
      }),
      weights: () => bytes.slice(weights, weights + problem.weights.length),
      reserve,
      planView: () => {
        const part = tensor(problem.type, [k, rows, 1, 1], elementBytes, rowBytes, weights);
        view.setInt32(part + 80, OP.view, true);
        view.setBigUint64(part + 152, BigInt(w), true);
        view.setBigUint64(part + 232, BigInt(w), true);
        planned(part);
      },
      lookUp: (numbers) => {
        const indices = place(4 * numbers.length);
        new Int32Array(this.#memory.buffer, indices, numbers.length).set(numbers);
        const found = place(4 * k * numbers.length);
        const ids = tensor(TYPE_I32, [numbers.length, 1, 1, 1], 4, 4 * numbers.length, indices);
        const rowsOut = tensor(TYPE_F32, [k, numbers.length, 1, 1], 4, 4 * k, found);
        view.setInt32(rowsOut + 80, OP.lookUp, true);
        view.setBigUint64(rowsOut + 152, BigInt(w), true);
        view.setBigUint64(rowsOut + 160, BigInt(ids), true);
        planned(rowsOut);
        this.#exports["operator"]!(BigInt(parameters), BigInt(rowsOut));
        return numbers.map((_, at) =>
          bytes.slice(found + 4 * k * at, found + 4 * k * at + Math.min(k, rowBytes)),
        );
      },
    };
  }
}
