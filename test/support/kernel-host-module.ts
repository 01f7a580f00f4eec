import { readFileSync } from "node:fs";
import { IMAGE_HEAP_BYTES } from "../../wasm/changes.ts";
import { concatBytes, section, sized, sizedText, uleb, vector } from "../../wasm/linker/byte-writer.ts";
import { link } from "../../wasm/linker/link.ts";
import { CACHE_FORMATS, QUANTIZATIONS, VEC_DOTS } from "../../wasm/quantizations.ts";
import { callForDots, DOT_TYPE, dotBody, type DotMachine } from "./dot-machines.ts";

const I32 = 0x7f;
const I64 = 0x7e;
const F64 = 0x7c;
/** Where the stand-in for llama.cpp's own operator leaves a mark. */
export const FALLBACK_MARK = 64;
/** Where the stand-in for llama.cpp's function for graphs leaves the address of the node's address, and counts nodes. */
export const LEFT_NODE = 80;
export const LEFT_COUNT = 88;
/** Where it stands how many tokens a draft model is sure of. */
export const DRAFT_TOKENS = 68;
/** Where dot products are counted, when another machine's stand in for them. */
export const DOT_COUNT = 72;
/** Result of the stand-in for llama.cpp's decoding. */
export const PROCESS_RESULT = 76;
/** Token that the stand-in for llama.cpp's sampler chooses. */
export const CHOICE = 68;
/** Where the end of the memory stands that kernels may allocate. */
export const FREE_MEMORY = 96;
/** Where the tokens stand that a draft model has read. */
export const TOKENS_READ = 92;
/** Milliseconds of the clock, and by how many it goes on whenever it is read; float64 each. */
const CLOCK = 640;
export const CLOCK_STEP = 648;
/** The kernels' stack grows down from here. */
export const STACK_TOP = 1024 * 1024;

/** As in the engine's module: V8 compares addresses with the largest one that a memory may have. */
const MAX_PAGES = IMAGE_HEAP_BYTES / 65_536;

const FIRST_VEC_DOT = 3;
const THREAD = FIRST_VEC_DOT + VEC_DOTS.length;
const OPERATOR = THREAD + 1;
const RESERVE = THREAD + 2;
const DEQUANTIZE = THREAD + 3;
const GRAPH_THREAD = THREAD + 4;
const DECODE = THREAD + 5;
const IS_END = THREAD + 6;
const PIECE = THREAD + 7;
const PARSE = THREAD + 8;
const LEFT_RECURSION = THREAD + 9;
const ALTERNATES = THREAD + 10;
const PROCESS = THREAD + 11;
const PROMPT_CLEAR = THREAD + 12;
const DOT = THREAD + 13;
const DUP = THREAD + 14;
const ROPE = THREAD + 15;
const SPECULATION = THREAD + 16;
const GUESS = THREAD + 17;
const ALLOCATE = THREAD + 18;
const STATE_SIZE = THREAD + 19;
const PUSH_TOKEN = THREAD + 20;
const COPY_SEQUENCE = THREAD + 21;
const SINGLE_TASK = THREAD + 22;
const DRAFT_PROCESS = THREAD + 23;
const DRAFT = THREAD + 24;
const BATCH_ADD = THREAD + 25;
const REMOVE = THREAD + 26;
const POSITION = THREAD + 27;
const BATCH_CLEAR = THREAD + 28;
const MASK = THREAD + 29;
const SAMPLE = THREAD + 30;
const NOW = THREAD + 31;
const UPDATE = THREAD + 32;
const SYSTEM_CLOCK = THREAD + 33;
const FORMAT_NAME = THREAD + 34;
const BARRIER = 1;

/** Functions that turn rows of blocks into floats, or back. */
const CONVERSIONS = [
  ...QUANTIZATIONS.map(({ name }) => `dequantize_row_${name}`),
  ...CACHE_FORMATS.map((name) => `quantize_row_${name}`),
];

const type = (...parameters: number[]): Uint8Array =>
  concatBytes([[0x60], vector(parameters.map((parameter) => [parameter])), vector([])]);
const body = (...code: number[]): Uint8Array => sized(new Uint8Array([0, ...code, 0x0b]));

/** A module with the functions that the kernels replace and call, and nothing else. */
function hostModule(pages: number, isShared: boolean, machine: DotMachine, stackTop: number): Uint8Array {
  const memory = concatBytes([
    sizedText("env"),
    sizedText("memory"),
    [2, isShared ? 7 : 5],
    uleb(pages),
    uleb(MAX_PAGES),
  ]);
  const stackPointer = [I64, 1, 0x42, ...signedLeb(stackTop), 0x0b];
  // memory.copy of as many bytes as there are weights: what was to be dequantized stands where floats would.
  const copy = [0x20, 1, 0x20, 0, 0x20, 2, 0xfc, 10, 0, 0];
  // i64.const mark, i32.const 1, i32.store
  const mark = [0x42, ...signedLeb(FALLBACK_MARK), 0x41, 1, 0x36, 2, 0];
  // Of the state that it is given: what its graph's nodes are, at offset 560.
  const leaveNode = [0x42, ...signedLeb(LEFT_NODE), 0x20, 0, 0x29, 3, ...uleb(560), 0x37, 3, 0];
  const leftCount = [0x42, ...signedLeb(LEFT_COUNT)];
  const countLeft = [...leftCount, ...leftCount, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0];
  const dotCount = [0x42, ...signedLeb(DOT_COUNT)];
  // i32.load, i32.const 1, i32.add, i32.store
  const count = [...dotCount, ...dotCount, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0];
  const read = [0x42, ...signedLeb(TOKENS_READ)];
  const loadRead = [...read, 0x28, 2, 0];
  const countRead = [...read, ...loadRead, 0x41, 1, 0x6a, 0x36, 2, 0];
  // What is removed begins at the third argument; the last position is one less than what has been read.
  const removed = [...read, 0x20, 2, 0x36, 2, 0];
  const tokensRead = [...loadRead, 0x41, 1, 0x6b];
  // Makes the first guess so long, if that many tokens are requested.
  const request = [0x20, 1, 0x29, 3, 0];
  const guess = [...request, 0x29, 3, 24];
  const sure = [0x42, ...signedLeb(DRAFT_TOKENS), 0x28, 2, 0];
  const wanted = [...request, 0x28, 2, 4];
  const least = [...sure, ...wanted, ...sure, ...wanted, 0x48, 0x1b];
  const drafted = [...guess, ...guess, 0x29, 3, 0, ...least, 0xad, 0x42, 4, 0x7e, 0x7c, 0x37, 3, 8];
  const free = [0x42, ...signedLeb(FREE_MEMORY)];
  const loadFree = [...free, 0x29, 3, 0];
  // Takes what is asked for from the end of what is free.
  const allocate = [...free, ...loadFree, 0x20, 0, 0x7d, 0x37, 3, 0, ...loadFree];
  const clock = [0x42, ...signedLeb(CLOCK)];
  const loadClock = [...clock, 0x2b, 3, 0];
  const clockStep = [0x42, ...signedLeb(CLOCK_STEP), 0x2b, 3, 0];
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
        type(I64, I64, I64),
        type(I64, I64, I32),
        type(I64, I64, I32, I32),
        [0x60, 2, I64, I32, 1, I32],
        [0x60, 5, I64, I32, I64, I32, I32, 1, I32],
        type(I64, I64, I64, I64),
        [0x60, 5, I64, I64, I64, I64, I64, 1, I32],
        [0x60, 5, I64, I64, I64, I32, I32, 1, I64],
        DOT_TYPE,
        [0x60, 3, I64, I32, I64, 1, I32],
        [0x60, 2, I64, I32, 1, I64],
        [0x60, 3, I64, I32, I32, 1, I64],
        type(I64, I32),
        type(I64, I32, I32),
        [0x60, 3, I64, I64, I32, 1, I32],
        [0x60, 5, I64, I32, I32, I32, I32, 1, I32],
        [0x60, 4, I64, I32, I32, I32, 0],
        type(I64, I64, I64, I32),
        [0x60, 4, I64, I64, I32, I32, 1, I32],
        [0x60, 0, 1, F64],
        [0x60, 2, I32, I64, 1, I32],
        [0x60, 3, I64, I64, I64, 1, I64],
      ]),
    ),
    section(2, vector([memory])),
    section(
      3,
      vector([
        [0],
        [1],
        [2],
        ...VEC_DOTS.map(() => [3]),
        [4],
        [5],
        [5],
        [6],
        [1],
        [8],
        [9],
        [10],
        [11],
        [12],
        [13],
        [15],
        [1],
        [14],
        [0],
        [7],
        [16],
        [0],
        [4],
        [17],
        [18],
        [19],
        [20],
        [5],
        [0],
        [21],
        [22],
        [9],
        [1],
        [23],
        [24],
        [25],
        [1],
        [26],
        [27],
      ]),
    ),
    section(6, vector([stackPointer])),
    section(
      7,
      vector([
        concatBytes([sizedText("mul_mat"), [0], uleb(0)]),
        concatBytes([sizedText("plan"), [0], uleb(2)]),
        concatBytes([sizedText("barrier"), [0], uleb(BARRIER)]),
        concatBytes([sizedText("operator"), [0], uleb(OPERATOR)]),
        concatBytes([sizedText("reserve"), [0], uleb(RESERVE)]),
        concatBytes([sizedText("decode_utf8"), [0], uleb(DECODE)]),
        concatBytes([sizedText("process"), [0], uleb(PROCESS)]),
        concatBytes([sizedText("prompt_clear"), [0], uleb(PROMPT_CLEAR)]),
        concatBytes([sizedText("graph_thread"), [0], uleb(GRAPH_THREAD)]),
        concatBytes([sizedText("speculation"), [0], uleb(SPECULATION)]),
        concatBytes([sizedText("guess"), [0], uleb(GUESS)]),
        concatBytes([sizedText("draft_process"), [0], uleb(DRAFT_PROCESS)]),
        concatBytes([sizedText("draft"), [0], uleb(DRAFT)]),
        concatBytes([sizedText("sample"), [0], uleb(SAMPLE)]),
        concatBytes([sizedText("update_slots"), [0], uleb(UPDATE)]),
        ...VEC_DOTS.map(({ kernel }, at) => concatBytes([sizedText(kernel), [0], uleb(FIRST_VEC_DOT + at)])),
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
        body(0x41, 0),
        body(...copy),
        body(...leaveNode, ...countLeft),
        body(),
        ...[0x41, 0x41, -1, 0x41, 0x42].map((constant) => (constant < 0 ? body() : body(constant, 0))),
        body(0x42, ...signedLeb(PROCESS_RESULT), 0x28, 2, 0),
        body(...mark),
        sized(dotBody(machine, count)),
        body(...mark),
        body(...mark),
        body(0x20, 0),
        body(),
        body(...allocate),
        body(0x42, 0),
        body(),
        body(),
        body(0x41, 0),
        body(...mark, 0x41, 1),
        body(...mark, ...drafted),
        body(...countRead, 0x41, 0),
        body(...removed),
        body(...tokensRead),
        body(),
        body(),
        body(0x42, ...signedLeb(CHOICE), 0x28, 2, 0),
        body(...clock, ...loadClock, ...clockStep, 0xa0, 0x39, 3, 0, ...loadClock),
        body(),
        body(0x41, 0),
        body(0x20, 0),
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

/** The kernels' object file. */
export const KERNELS = new URL("../../wasm/kernels.o", import.meta.url);

/** A memory64 of so many pages of 64 KiB, or up to a larger maximum. */
export function hostMemory(pages: number, { maximum = pages, shared = false } = {}): WebAssembly.Memory {
  const descriptor = { address: "i64", initial: BigInt(pages), maximum: BigInt(maximum), shared };
  // The DOM's types do not know memory64 yet.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return new WebAssembly.Memory(descriptor as unknown as WebAssembly.MemoryDescriptor);
}

/**
 * A module that imports `env.memory` (memory64, `pages` long) and exports each kernel under the name of what it
 * replaces in llama.cpp: `mul_mat`, `plan`, `reserve`, `barrier`, `decode_utf8`, `process`, `prompt_clear`,
 * `graph_thread`, `speculation`, `guess`, `draft_process`, `draft`, `sample`, `update_slots`, `operator` (which that asks) and the dot products under their own. With a machine named, its dot
 * product of bytes stands in for this machine's. Threads that share a memory need a stack each.
 */
export function linkHost(
  pages: number,
  isShared: boolean,
  object = KERNELS,
  machine?: DotMachine,
  stackTop = STACK_TOP,
): Uint8Array<ArrayBuffer> {
  const kernels = readFileSync(object);
  return link(hostModule(pages, isShared, machine ?? "cut off", stackTop), {
    object: machine ? callForDots(kernels, DOT) : kernels,
    replace: {
      kernel_mul_mat: 0,
      kernel_graph_plan: 2,
      kernel_barrier: BARRIER,
      kernel_operator: OPERATOR,
      kernel_graph_thread: GRAPH_THREAD,
      kernel_sched_reserve: RESERVE,
      kernel_decode_utf8: DECODE,
      kernel_process: PROCESS,
      kernel_prompt_clear: PROMPT_CLEAR,
      kernel_speculative_init: SPECULATION,
      kernel_ngram_draft: GUESS,
      kernel_draft_process: DRAFT_PROCESS,
      kernel_draft: DRAFT,
      kernel_sampler_sample: SAMPLE,
      kernel_update_slots: UPDATE,
      ...Object.fromEntries(VEC_DOTS.map(({ kernel }, at) => [kernel, FIRST_VEC_DOT + at])),
    },
    originals: {
      original_mul_mat: 0,
      original_graph_plan: 2,
      original_sched_reserve: RESERVE,
      original_decode_utf8: DECODE,
      original_process: PROCESS,
      original_prompt_clear: PROMPT_CLEAR,
      original_graph_thread: GRAPH_THREAD,
      original_speculative_init: SPECULATION,
      original_draft_process: DRAFT_PROCESS,
      original_draft: DRAFT,
      original_sampler_sample: SAMPLE,
      original_update_slots: UPDATE,
    },
    imports: {
      ggml_barrier: BARRIER,
      // No test starts a thread or reads a grammar: any function of the type will do.
      original_grammar_apply: 0,
      original_advance_stack: DEQUANTIZE,
      state_size: STATE_SIZE,
      get_state: ALTERNATES,
      set_state: ALTERNATES,
      push_token: PUSH_TOKEN,
      copy_sequence: COPY_SEQUENCE,
      try_to_allocate: THREAD,
      original_tokenize_input: OPERATOR,
      original_process_single_task: SINGLE_TASK,
      vocabulary_is_end: IS_END,
      vocabulary_piece: PIECE,
      free_memory: BARRIER,
      allocate_memory: ALLOCATE,
      batch_clear: BATCH_CLEAR,
      batch_add: BATCH_ADD,
      batch_part: SPECULATION,
      remove_tokens: REMOVE,
      last_position: POSITION,
      last_position_iswa: POSITION,
      original_peg_parse: PARSE,
      original_peg_rule: DEQUANTIZE,
      original_left_recursion: LEFT_RECURSION,
      original_parse_alternates: ALTERNATES,
      original_secondary_thread: THREAD,
      original_kq_mask: MASK,
      original_prepare_cache: DEQUANTIZE,
      find_cache_slot: DEQUANTIZE,
      original_clock: SYSTEM_CLOCK,
      original_init_sampler: BARRIER,
      original_format_name: FORMAT_NAME,
      ...Object.fromEntries(CONVERSIONS.map((name) => [name, DEQUANTIZE])),
      // No test here has a GPU: gpu-graph-host.ts does.
      ask_gpu_script: IS_END,
      now_ms: NOW,
      original_gpu_build: OPERATOR,
      original_gpu_graph: OPERATOR,
      read_file: DEQUANTIZE,
      set_tensor: PARSE,
      compute_dup: DUP,
      compute_rope: ROPE,
    },
  });
}
