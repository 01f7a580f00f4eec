import { MEMORY_CELLS } from "../../wasm/memory-cells.ts";
import { hostMemory, LEFT_COUNT, LEFT_NODE, linkHost, STACK_TOP } from "./kernel-host-module.ts";

/** 4 MiB. */
const PAGES = 64;
const TENSOR_BYTES = 336;
/** ggml's mark of nodes that are to be computed. */
const COMPUTE = 16;
/** Where wasm/kernels/steps.h looks whether to leave a step. */
const LEAVE_STEP = MEMORY_CELLS.leaveStep;

interface GraphNode {
  /** Number of the operator in enum ggml_op; absent: a leaf. */
  readonly op?: number;
  /** op_params, of 32 bits each. */
  readonly parameters?: Int32Array;
  readonly sources?: readonly number[];
  readonly ne: readonly number[];
  /** Numbers that it holds; absent: NaN. */
  readonly values?: readonly number[];
  /** A tensor whose memory is this one's as well. */
  readonly inPlaceOf?: number;
  /** False for one that is not to be computed. */
  readonly isComputed?: boolean;
}

interface GraphRun {
  /** How many nodes were left to llama.cpp, and the last one of them. */
  readonly left: number;
  readonly last: number;
  /** ggml_status: 0, or 1 for a graph that was left. */
  readonly status: number;
}

/** Runs whole graphs of tensors in F32 on one thread. */
export class GraphHost {
  readonly #memory = hostMemory(PAGES);
  readonly #view = new DataView(this.#memory.buffer);
  #thread: (state: bigint) => void = () => {};
  #next = STACK_TOP;

  static async start(): Promise<GraphHost> {
    const host = new GraphHost();
    const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), {
      env: { memory: host.#memory },
    });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    host.#thread = instance.exports["graph_thread"] as (state: bigint) => void;
    return host;
  }

  /** Lays a tensor out; its address is what others name it by. */
  add(node: GraphNode): number {
    const { op = 0, parameters = [], sources = [], ne, values, inPlaceOf, isComputed = true } = node;
    const count = ne.reduce((product, each) => product * each, 1);
    const at = this.#place(TENSOR_BYTES);
    const data = inPlaceOf === undefined ? this.#place(4 * count) : this.#pointer(inPlaceOf + 248);
    if (inPlaceOf === undefined) {
      new Float32Array(this.#memory.buffer, data, count).set(values ?? Array<number>(count).fill(Number.NaN));
    }
    let stride = 4;
    for (let dimension = 0; dimension < 4; dimension++) {
      this.#setPointer(at + 16 + 8 * dimension, ne[dimension] ?? 1);
      this.#setPointer(at + 48 + 8 * dimension, stride);
      stride *= ne[dimension] ?? 1;
    }
    this.#view.setInt32(at + 80, op, true);
    for (const [index, value] of parameters.entries()) this.#view.setInt32(at + 84 + 4 * index, value, true);
    this.#view.setInt32(at + 148, isComputed ? COMPUTE : 0, true);
    for (const [index, source] of sources.entries()) this.#setPointer(at + 152 + 8 * index, source);
    this.#setPointer(at + 248, data);
    return at;
  }

  /**
   * Computes the nodes, but for those that are left to llama.cpp.
   * @param options.leaveBefore another thread has left the graph before this node
   * @param options.isStepLeft the engine's script has asked for the end of the step
   * @param options.thread number of the thread
   */
  run(
    nodes: readonly number[],
    { useReference = false, leaveBefore = -1, isStepLeft = false, thread = 0 } = {},
  ): GraphRun {
    const [list, graph, plan, pool, state] = [8 * nodes.length, 80, 64, 320, 560].map((bytes) =>
      this.#place(bytes),
    );
    for (const [index, node] of nodes.entries()) this.#setPointer(list! + 8 * index, node);
    this.#view.setInt32(graph! + 4, nodes.length, true);
    this.#setPointer(graph! + 16, list!);
    this.#view.setUint8(plan! + 48, useReference ? 1 : 0);
    this.#setPointer(pool! + 88, graph!);
    this.#setPointer(pool! + 96, plan!);
    this.#view.setInt32(pool! + 104, 1, true);
    this.#view.setInt32(pool! + 264, leaveBefore, true);
    this.#setPointer(state! + 528, pool!);
    this.#view.setInt32(state! + 536, thread, true);
    this.#view.setInt32(LEAVE_STEP, isStepLeft ? 1 : 0, true);
    this.#view.setInt32(LEFT_COUNT, 0, true);
    this.#thread(BigInt(state!));
    const left = this.#view.getInt32(LEFT_COUNT, true);
    const last = left > 0 ? this.#pointer(this.#pointer(LEFT_NODE)) : 0;
    return { left, last, status: this.#view.getInt32(pool! + 292, true) };
  }

  values(tensor: number): number[] {
    const count = [0, 1, 2, 3].reduce(
      (all, dimension) => all * this.#pointer(tensor + 16 + 8 * dimension),
      1,
    );
    return Array.from(new Float32Array(this.#memory.buffer, this.#pointer(tensor + 248), count));
  }

  #place(length: number): number {
    const at = this.#next;
    this.#next += Math.ceil(length / 64) * 64 + 64;
    return at;
  }

  #pointer(at: number): number {
    return Number(this.#view.getBigUint64(at, true));
  }

  #setPointer(at: number, value: number): void {
    this.#view.setBigUint64(at, BigInt(value), true);
  }
}
