import type { Splice } from "./linker/splice.ts";

/**
 * Where llama.cpp's compiler has copied ggml_barrier into a function, a loop waits until the number of barriers that
 * were passed is another one, and the last thread to arrive counts it up.
 */
interface CopiedBarrier {
  readonly index: number;
  /** Locals of the function: the pool, and the number before. */
  readonly pool: number;
  readonly passed: number;
  readonly times: number;
}

const COPIES: readonly CopiedBarrier[] = [
  // ggml_compute_forward_mul_mat
  { index: 2028, pool: 3, passed: 58, times: 1 },
  // ggml_graph_compute_thread: in mul_mat_id and behind each operator, then behind the last one
  { index: 3053, pool: 1, passed: 124, times: 2 },
  { index: 3053, pool: 0, passed: 124, times: 1 },
];

const get = (local: number): number[] => [0x20, local];
/** i32.atomic.load and i32.atomic.rmw.add of ggml_threadpool.n_barrier_passed at offset 192, aligned to 4 bytes. */
const LOAD_PASSED = [0xfe, 0x10, 0x02, 0xc0, 0x01];
const ADD_TO_PASSED = [0xfe, 0x1e, 0x02, 0xc0, 0x01];
const [LOOP, EMPTY, BR_IF, END, DROP, I32_EQ] = [0x03, 0x40, 0x0d, 0x0b, 0x1a, 0x46];
const I32_ONE = [0x41, 0x01];

export const BARRIER_SPLICES: readonly Splice[] = COPIES.flatMap(({ index, pool, passed, times }) => [
  {
    index,
    times,
    find: [LOOP, EMPTY, ...get(pool), ...LOAD_PASSED, ...get(passed), I32_EQ, BR_IF, 0, END],
    push: [...get(pool), ...get(passed)],
    kernel: "kernel_await_barrier",
  },
  {
    index,
    times,
    find: [...get(pool), ...I32_ONE, ...ADD_TO_PASSED, DROP],
    push: get(pool),
    kernel: "kernel_release_barrier",
  },
]);
