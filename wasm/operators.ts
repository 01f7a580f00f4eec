import type { Splice } from "./linker/splice.ts";

/** node->op - 1, by which ggml_graph_compute_thread branches; the node is local 1. */
const LOAD_OPERATOR = [0x20, 1, 0x28, 2, 80];
const MINUS_ONE_AND_BRANCH = [0x41, 1, 0x6b, 0x0e];

/**
 * llama.cpp's compiler has copied nearly all operators into ggml_graph_compute_thread. A kernel is asked before it
 * branches to one of them, and says by which number to branch: that of no operator when it has done the work.
 */
export const OPERATOR_SPLICE: Splice = {
  index: 3053,
  find: [...LOAD_OPERATOR, ...MINUS_ONE_AND_BRANCH],
  times: 1,
  // The parameters lie at local 58 + 8.
  push: [0x20, 58, 0x42, 8, 0x7c, 0x20, 1],
  kernel: "kernel_operator",
  behind: MINUS_ONE_AND_BRANCH,
};
