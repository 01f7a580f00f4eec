import { readFileSync } from "node:fs";
import { concatBytes, sized, uleb, vector } from "../../wasm/linker/byte-writer.ts";
import { link } from "../../wasm/linker/link.ts";
import { VEC_DOTS } from "../../wasm/vec-dots.ts";

const I32 = 0x7f;
const I64 = 0x7e;
/** 64 MiB, plenty for a test. */
const DEFAULT_PAGES = 1024;
/** Where the stand-in for llama.cpp's own operator leaves a mark. */
const FALLBACK_MARK = 64;
/** Structures are smaller than this and start as zeros; the work buffer need not. */
const MAX_ZEROED = 1024;
/** The kernels' stack grows down from here. */
const STACK_TOP = 1024 * 1024;

const FIRST_VEC_DOT = 3;
const THREAD = FIRST_VEC_DOT + VEC_DOTS.length;
const OPERATOR = THREAD + 1;
const SWIGLU = OPERATOR + 1;
const BARRIER = 1;

const text = (value: string): Uint8Array => sized(new TextEncoder().encode(value));
const section = (id: number, content: Uint8Array): Uint8Array => concatBytes([[id], sized(content)]);
const type = (...parameters: number[]): Uint8Array =>
  concatBytes([[0x60], vector(parameters.map((parameter) => [parameter])), vector([])]);
const body = (...code: number[]): Uint8Array => sized(new Uint8Array([0, ...code, 0x0b]));

/** A module with the functions that the kernels replace and call, and nothing else. */
function hostModule(pages: number, isShared: boolean): Uint8Array {
  const memory = concatBytes([text("env"), text("memory"), [2, isShared ? 7 : 5], uleb(pages), uleb(pages)]);
  const stackTop = [I64, 1, 0x42, ...signedLeb(STACK_TOP), 0x0b];
  // i64.const mark, i32.const 1, i32.store
  const mark = [0x42, ...signedLeb(FALLBACK_MARK), 0x41, 1, 0x36, 2, 0];
  return concatBytes([
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    section(
      1,
      vector([
        type(I64, I64),
        type(I64),
        type(I64, I64, I32, I64),
        type(I32, I64, I64, I64, I64, I64, I64, I32),
        [0x60, 1, I64, 1, I64],
        [0x60, 2, I64, I64, 1, I32],
        type(I32, I64, I64, I64),
      ]),
    ),
    section(2, vector([memory])),
    section(3, vector([[0], [1], [2], ...VEC_DOTS.map(() => [3]), [4], [5], [6]])),
    section(6, vector([stackTop])),
    section(
      7,
      vector([
        concatBytes([text("mul_mat"), [0], uleb(0)]),
        concatBytes([text("plan"), [0], uleb(2)]),
        concatBytes([text("barrier"), [0], uleb(BARRIER)]),
        concatBytes([text("operator"), [0], uleb(OPERATOR)]),
        concatBytes([text("swiglu"), [0], uleb(SWIGLU)]),
        ...VEC_DOTS.map(({ kernel }, at) => concatBytes([text(kernel), [0], uleb(FIRST_VEC_DOT + at)])),
      ]),
    ),
    section(
      10,
      vector([
        body(...mark),
        body(),
        body(),
        ...VEC_DOTS.map(() => body()),
        body(0x20, 0),
        body(0x41, 0),
        body(),
      ]),
    ),
  ]);
}

function signedLeb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    if (rest === 0 && (low & 0x40) === 0) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

const KERNELS = new URL("../../wasm/kernels.o", import.meta.url);

/**
 * A module that imports `env.memory` (memory64, `pages` long) and exports each kernel under the name of what it
 * replaces in llama.cpp: `mul_mat`, `plan`, `barrier`, `swiglu`, `operator` (which llama.cpp's
 * dispatch asks) and the dot products under their own.
 */
export function linkHost(pages: number, isShared: boolean, object = KERNELS): Uint8Array<ArrayBuffer> {
  return link(hostModule(pages, isShared), {
    object: readFileSync(object),
    replace: {
      kernel_mul_mat: 0,
      kernel_graph_plan: 2,
      kernel_barrier: BARRIER,
      kernel_operator: OPERATOR,
      kernel_swiglu: SWIGLU,
      ...Object.fromEntries(VEC_DOTS.map(({ kernel }, at) => [kernel, FIRST_VEC_DOT + at])),
    },
    originals: { original_mul_mat: 0, original_graph_plan: 2 },
    // No test runs a step or starts a thread: any function of the type will do.
    imports: { ggml_barrier: BARRIER, original_update_slots: BARRIER, original_secondary_thread: THREAD },
  });
}

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
}

export interface MatrixResult {
  /** [slot][head][column][row] */
  readonly values: Float32Array;
  /** True when the kernel left the operator to llama.cpp. */
  readonly fellBack: boolean;
}

export interface HostOptions {
  /** The kernels' object file. */
  readonly object?: URL;
  /** Size of the memory, in pages of 64 KiB. */
  readonly pages?: number;
}

/** An operator that lies ready in the host's memory. The next one that is prepared takes its place. */
export interface PreparedProblem {
  run(): void;
  read(): MatrixResult;
}

/** The kernels in a module of their own: runs operators on memory laid out as ggml lays it out. */
export class KernelHost {
  readonly #memory: WebAssembly.Memory;
  readonly #exports: Record<string, (...args: (bigint | number)[]) => void>;

  private constructor(
    memory: WebAssembly.Memory,
    exports: Record<string, (...args: (bigint | number)[]) => void>,
  ) {
    this.#memory = memory;
    this.#exports = exports;
  }

  static async start({ object = KERNELS, pages = DEFAULT_PAGES }: HostOptions = {}): Promise<KernelHost> {
    const bytes = linkHost(pages, false, object);
    // The DOM's types do not know memory64 yet.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const memory = new WebAssembly.Memory({
      address: "i64",
      initial: BigInt(pages),
      maximum: BigInt(pages),
    } as unknown as WebAssembly.MemoryDescriptor);
    const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return new KernelHost(memory, instance.exports as Record<string, (...args: (bigint | number)[]) => void>);
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

  /** SwiGLU of numbers and their gates. */
  swiglu(numbers: Float32Array, gates: Float32Array): Float32Array {
    const [x, gate] = [STACK_TOP, STACK_TOP + numbers.byteLength];
    new Float32Array(this.#memory.buffer, x, numbers.length).set(numbers);
    new Float32Array(this.#memory.buffer, gate, gates.length).set(gates);
    // In place, as in a graph that reuses its buffers.
    this.#exports["swiglu"]!(numbers.length, BigInt(x), BigInt(x), BigInt(gate));
    return new Float32Array(this.#memory.buffer, x, numbers.length).slice();
  }

  prepare(problem: MatrixProblem): PreparedProblem {
    const { k, rows, matrices = 1, heads = 1, slots = 1 } = problem;
    const columns = problem.activations.length / k / heads / slots;
    const view = new DataView(this.#memory.buffer);
    const bytes = new Uint8Array(this.#memory.buffer);
    bytes.fill(0, 0, STACK_TOP);
    let next = STACK_TOP;
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
    const x = tensor(0, [k, columns, heads, slots], 4, 4 * k, activations);
    const out = tensor(0, [rows, columns, heads, slots], 4, 4 * rows, result);
    view.setBigUint64(out + 152, BigInt(w), true);
    view.setBigUint64(out + 160, BigInt(x), true);

    const pool = place(320);
    view.setInt32(pool + 104, 1, true); // threads
    const parameters = place(64);
    view.setBigUint64(parameters + 24, BigInt(pool), true);
    view.setInt32(parameters, 0, true);
    view.setInt32(parameters + 4, 1, true);
    view.setBigUint64(parameters + 8, BigInt(workSize), true);
    view.setBigUint64(parameters + 16, BigInt(work), true);
    view.setInt32(FALLBACK_MARK, 0, true);
    return {
      run: () => this.#exports["mul_mat"]!(BigInt(parameters), BigInt(out)),
      read: () => ({
        values: new Float32Array(this.#memory.buffer, result, values).slice(),
        fellBack: view.getInt32(FALLBACK_MARK, true) === 1,
      }),
    };
  }
}
