import type { Splice } from "./linker/splice.ts";

/** The thread pool becomes local 109, and what lies at its offset 88, the graph, local 107. */
const KEEP_POOL = [0x22, 109];
const LOAD_GRAPH = [0x29, 3, 88];
const SET_GRAPH = [0x21, 107];

/** ggml_graph_compute_thread takes its graph from the thread's state, local 0, in which our kernels name a single node. */
export const GRAPH_SPLICE: Splice = {
  index: 3053,
  find: [...KEEP_POOL, ...LOAD_GRAPH, ...SET_GRAPH],
  times: 1,
  push: [0x21, 109, 0x20, 0],
  kernel: "kernel_graph_of",
  behind: SET_GRAPH,
};
