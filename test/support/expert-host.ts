import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { DotMachine } from "./dot-machines.ts";
import { HostTensors } from "./host-tensors.ts";
import { hostMemory, KERNELS, linkHost } from "./kernel-host-module.ts";

/** 64 MiB. */
const PAGES = 1024;
/** Each thread's stack grows down from the end of its own megabyte; tensors lie above. */
const STACK_BYTES = 1024 * 1024;
const MAX_THREADS = 2;
const TYPE = { f32: 0, i32: 26 } as const;
/** F32, F16, BF16. */
const TYPES_OF_FLOATS = new Set([0, 1, 30]);
/** As in ggml.h, and ggml-backend.h. */
const OP = { product: 29, productOfExperts: 30 } as const;
const FOR_WEIGHTS = 1;

export interface ExpertProblem {
  /** ggml's number of the weights' format. */
  readonly type: number;
  /** Weights expert by expert and row by row, as they lie in a GGUF. */
  readonly weights: Uint8Array;
  readonly experts: number;
  readonly rows: number;
  readonly k: number;
  /** [token][of its columns][k]: a column for each expert of a token, or one for all. */
  readonly activations: Float32Array;
  /** [token][of its experts] */
  readonly chosen: readonly (readonly number[])[];
  /** The weights belong to a model that has been loaded for so many backends: the kernels may repack them. */
  readonly backends?: number;
  readonly threads?: 1 | 2;
  /** Bytes of work buffer; absent: as many as the kernels plan. */
  readonly workBytes?: number;
}

interface PreparedExperts {
  /** False when the kernels leave the operator to llama.cpp. */
  run(): Promise<boolean>;
  /** [token][of its experts][row] */
  read(): Float32Array;
  /** The weights as they lie now. */
  weights(): Uint8Array;
  /** Announces the product once more, as each context of a model does. */
  reserve(): void;
  /** Announces a graph that multiplies with the experts' matrices as a batch, as attention does. */
  planBatch(): void;
}

/** Computes its part of an operator as one of several threads. */
const THREAD = `
  const { workerData, parentPort } = require("node:worker_threads");
  const { module, memory, parameters, node } = workerData;
  const { operator } = new WebAssembly.Instance(module, { env: { memory } }).exports;
  parentPort.postMessage(operator(parameters, node));
`;

/** The kernels in a module of their own, which multiply experts of a mixture as llama.cpp's graphs have them. */
export class ExpertHost {
  readonly #memory = hostMemory(PAGES, { shared: true });
  readonly #tensors = new HostTensors(this.#memory, MAX_THREADS * STACK_BYTES);
  readonly #modules: readonly WebAssembly.Module[];
  readonly #exports: Record<string, (...values: (bigint | number)[]) => number>;

  private constructor(modules: readonly WebAssembly.Module[]) {
    this.#modules = modules;
    const { exports } = new WebAssembly.Instance(modules[0]!, { env: { memory: this.#memory } });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    this.#exports = exports as Record<string, (...values: (bigint | number)[]) => number>;
  }

  /** @param machine another machine whose dot product of bytes is to stand in for this one's */
  static async start(machine?: DotMachine): Promise<ExpertHost> {
    const modules = Array.from({ length: MAX_THREADS }, (_, thread) =>
      WebAssembly.compile(linkHost(PAGES, true, KERNELS, machine, (thread + 1) * STACK_BYTES)),
    );
    return new ExpertHost(await Promise.all(modules));
  }

  /** Lays a product out in the host's memory, and loads its model. The next one takes its place. */
  prepare(problem: ExpertProblem): PreparedExperts {
    const { type, weights, experts, rows, k, activations, chosen, threads = 1, backends } = problem;
    const { buffer } = this.#memory;
    const view = new DataView(buffer);
    const tensors = this.#tensors;
    tensors.clear();
    const [tokens, used] = [chosen.length, chosen[0]!.length];
    const rowBytes = weights.length / rows / experts;
    // Of blocks no test needs the bytes; floats are rows of elements.
    const element = TYPES_OF_FLOATS.has(type) ? rowBytes / k : rowBytes;
    const shape = { type, nb: [element, rowBytes, rowBytes * rows, weights.length] };
    const w = tensors.tensor({ ...shape, ne: [k, rows, experts], data: weights });
    const columns = { type: TYPE.f32, ne: [k, activations.length / k / tokens, tokens], data: activations };
    const ids = { type: TYPE.i32, ne: [used, tokens], data: Int32Array.from(chosen.flat()) };
    const results = new Float32Array(rows * used * tokens).fill(Number.NaN);
    const out = tensors.tensor({ type: TYPE.f32, ne: [rows, used, tokens], data: results });
    const sources = [w, tensors.tensor(columns), tensors.tensor(ids)];
    for (const [at, source] of sources.entries()) view.setBigUint64(out + 152 + 8 * at, BigInt(source), true);

    const [ofWeights, scheduler, graph, plan, pool] = [128, 16, 64, 64, 320].map((bytes) =>
      tensors.place(bytes),
    );
    view.setBigUint64(w + 8, BigInt(ofWeights!), true);
    view.setInt32(ofWeights! + 112, backends === undefined ? 0 : FOR_WEIGHTS, true);
    view.setInt32(scheduler! + 4, backends ?? 1, true);
    const node = tensors.place(8);
    view.setBigUint64(node, BigInt(out), true);
    view.setInt32(graph! + 4, 1, true);
    view.setBigUint64(graph! + 16, BigInt(node), true);
    view.setInt32(pool! + 104, threads, true);
    const planned = (op: number): void => {
      view.setInt32(out + 80, op, true);
      this.#exports["plan"]!(BigInt(plan!), BigInt(graph!), threads, 0n);
    };
    const reserve = (): void => {
      this.#exports["reserve"]!(BigInt(scheduler!), BigInt(graph!));
    };
    view.setInt32(out + 80, OP.productOfExperts, true);
    reserve();
    planned(OP.productOfExperts);
    const workBytes = problem.workBytes ?? Number(view.getBigUint64(plan!, true));
    const work = tensors.place(workBytes);
    const parameters = Array.from({ length: threads }, (_, thread) => {
      const at = tensors.place(64);
      view.setInt32(at, thread, true);
      view.setInt32(at + 4, threads, true);
      for (const [field, value] of [workBytes, work, pool!].entries())
        view.setBigUint64(at + 8 + 8 * field, BigInt(value), true);
      return BigInt(at);
    });
    return {
      run: async () => (await this.#runAll(parameters, BigInt(out))).every((done) => done === 1),
      read: () => new Float32Array(buffer, tensors.dataOf(out), results.length).slice(),
      weights: () => new Uint8Array(buffer, tensors.dataOf(w), weights.length).slice(),
      reserve,
      planBatch: () => {
        planned(OP.product);
        view.setInt32(out + 80, OP.productOfExperts, true);
      },
    };
  }

  async #runAll(parameters: readonly bigint[], node: bigint): Promise<unknown[]> {
    if (parameters.length === 1) return [this.#exports["operator"]!(parameters[0]!, node)];
    const workers = parameters.map((each, thread) => {
      const workerData = { module: this.#modules[thread], memory: this.#memory, parameters: each, node };
      return new Worker(THREAD, { eval: true, workerData });
    });
    const answers = workers.map(async (worker) => (await once(worker, "message")) as unknown[]);
    return (await Promise.all(answers)).flat();
  }
}
