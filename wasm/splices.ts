import { uleb } from "./linker/byte-writer.ts";
import type { Splice } from "./linker/splice.ts";
import { BARRIER_COPIES, FUNCTIONS, GRAPH_LOCALS, OFFSETS, STAGING_LOCALS } from "./llama-cpp-build.ts";

const [LOOP, EMPTY, BR_IF, END, DROP, I32_EQ] = [0x03, 0x40, 0x0d, 0x0b, 0x1a, 0x46];
const I32_ONE = [0x41, 0x01];
const I32_ZERO = [0x41, 0x00];
const I64_ZERO = [0x42, 0x00];
const MEMORY_FILL = [0xfc, 0x0b, 0x00];
const get = (local: number): number[] => [0x20, ...uleb(local)];
const set = (local: number): number[] => [0x21, ...uleb(local)];
const call = (name: keyof typeof FUNCTIONS): number[] => [0x10, ...uleb(FUNCTIONS[name])];
const tee = (local: number): number[] => [0x22, ...uleb(local)];
/** Memory arguments: alignment to 4 or 8 bytes, and the offset. */
const word = (offset: number): number[] => [0x02, ...uleb(offset)];
const doubleWord = (offset: number): number[] => [0x03, ...uleb(offset)];

const PASSED = word(OFFSETS["ggml_threadpool.n_barrier_passed"].at);
const LOAD_PASSED = [0xfe, 0x10, ...PASSED];
const ADD_TO_PASSED = [0xfe, 0x1e, ...PASSED];

/**
 * Replaces inlined copies of ggml_barrier, where a loop waits until the number of passed barriers changes, and the last
 * thread to arrive increments it.
 */
export const BARRIER_SPLICES: readonly Splice[] = BARRIER_COPIES.flatMap(
  ({ function: name, pool, passed, times }) => [
    {
      index: FUNCTIONS[name],
      times,
      find: [LOOP, EMPTY, ...get(pool), ...LOAD_PASSED, ...get(passed), I32_EQ, BR_IF, 0, END],
      push: [...get(pool), ...get(passed)],
      kernel: "kernel_await_barrier",
    },
    {
      index: FUNCTIONS[name],
      times,
      find: [...get(pool), ...I32_ONE, ...ADD_TO_PASSED, DROP],
      push: get(pool),
      kernel: "kernel_release_barrier",
    },
  ],
);

const { pool, graph } = GRAPH_LOCALS;
const STATE = 0;

/** Makes ggml_graph_compute_thread take its graph from our kernel, which can name a single node in the thread's state. */
export const GRAPH_SPLICE: Splice = {
  index: FUNCTIONS.ggml_graph_compute_thread,
  find: [...tee(pool), 0x29, ...doubleWord(OFFSETS["ggml_threadpool.cgraph"].at), ...set(graph)],
  times: 1,
  push: [...set(pool), ...get(STATE)],
  kernel: "kernel_graph_of",
  behind: set(graph),
};

const { data, size, tensor } = STAGING_LOCALS;
const READ = [...get(data), ...get(size), ...call("llama_file::read_raw")];
const SET_TENSOR = [
  ...get(tensor),
  ...get(data),
  ...I64_ZERO,
  ...get(size),
  ...call("ggml_backend_tensor_set"),
];

/**
 * Replaces the code of llama_model_loader::load_all_data that reads a tensor for a device into a temporary buffer and
 * uploads it; our kernel does both. The file is on the stack. Also removes the code that fills the buffer with zeros, which
 * makes all of it resident.
 */
export const STAGING_SPLICES: readonly Splice[] = [
  {
    index: FUNCTIONS["llama_model_loader::load_all_data"],
    find: [...READ, ...SET_TENSOR],
    times: 1,
    push: [...get(data), ...get(size), ...get(tensor)],
    kernel: "kernel_stage_tensor",
  },
  {
    index: FUNCTIONS["llama_model_loader::load_all_data"],
    find: [...get(data), ...I32_ZERO, ...get(size), ...MEMORY_FILL],
    times: 1,
  },
];

const NO_INDENT = [0x41, 0x7f];

/** Serializes a result as llama.cpp's own server does: the last argument replaces invalid UTF-8 by U+FFFD. */
export const RESULT_SPLICE: Splice = {
  index: FUNCTIONS["wllama_context::action_get_result"],
  find: [...NO_INDENT, ...call("common_json::dump")],
  times: 1,
  behind: [...NO_INDENT, ...I32_ONE, ...call("nlohmann::json_abi_v3_12_0::basic_json<nlohmann::...>::dump")],
};
