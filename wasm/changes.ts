import { BARRIER_SPLICES } from "./barriers.ts";
import { GRAPH_SPLICE } from "./graph-splice.ts";
import type { LinkPlan } from "./linker/link.ts";
import { PINNED_FUNCTIONS as STOCK } from "./pinned-functions.ts";
import { VEC_DOTS } from "./vec-dots.ts";

/** Largest heap of our engine: V8 takes no more. */
export const IMAGE_HEAP_BYTES = 16 * 1024 ** 3;

const PAGE_BYTES = 64 * 1024;

/** Name by which the engine's script calls a function of llama.cpp's that the stock module keeps to itself → index. */
export const ADDED_EXPORTS = {
  daybreak_tokenize: STOCK.tokenize.index,
  daybreak_token_to_piece: STOCK.tokenToPiece.index,
} as const;

/** One thing that our engine's WebAssembly does otherwise than llama.cpp's, and what the linker does for it. */
export interface Change extends Omit<LinkPlan, "object"> {
  readonly what: string;
  readonly why: string;
  /** The test that fails when the change does not do what it should. */
  readonly check: string;
}

/** All that is changed in llama.cpp's WebAssembly. What its script needs besides is in src/engine/core/*-patches.ts. */
export const CHANGES: readonly Change[] = [
  {
    what: "Matrix products run in our kernels, in a larger work buffer.",
    why: "They are nearly all of the work, and the package's are scalar code or what the compiler made of it.",
    check: "test/unit/wasm/kernels.test.ts",
    replace: { kernel_mul_mat: STOCK.mulMat.index, kernel_graph_plan: STOCK.graphPlan.index },
    originals: { original_mul_mat: STOCK.mulMat.index, original_graph_plan: STOCK.graphPlan.index },
  },
  {
    what: "Weights are repacked when a model has been loaded.",
    why: "Lanes of a vector are rows then, and a matrix is read as one stream.",
    check: "test/unit/wasm/repacked.test.ts",
    replace: { kernel_sched_reserve: STOCK.schedReserve.index },
    originals: { original_sched_reserve: STOCK.schedReserve.index },
    imports: {
      dequantize_row_q4_0: STOCK.dequantizeQ4_0.index,
      dequantize_row_q8_0: STOCK.dequantizeQ8_0.index,
      dequantize_row_q4_K: STOCK.dequantizeQ4_K.index,
      dequantize_row_q5_K: STOCK.dequantizeQ5_K.index,
      dequantize_row_q6_K: STOCK.dequantizeQ6_K.index,
      dequantize_row_iq4_nl: STOCK.dequantizeIq4Nl.index,
      dequantize_row_iq4_xs: STOCK.dequantizeIq4Xs.index,
      dequantize_row_mxfp4: STOCK.dequantizeMxfp4.index,
    },
  },
  {
    what: "Threads that wait for each other fall asleep after a while.",
    why: "Those that spin take the processor from the one that they wait for, when there are fewer than threads.",
    check: "test/unit/wasm/barrier.test.ts",
    replace: {
      kernel_barrier: STOCK.barrier.index,
      kernel_secondary_thread: STOCK.secondaryThread.index,
    },
    originals: { original_secondary_thread: STOCK.secondaryThread.index },
    imports: { ggml_barrier: STOCK.barrier.index },
    splices: BARRIER_SPLICES,
  },
  {
    what: "What a usual graph holds is computed by our kernels, node by node; llama.cpp's function does the rest.",
    why: "Its compiler has copied the operators into one function, which V8 takes a second to optimise.",
    check: "test/unit/wasm/graph-thread.test.ts",
    replace: { kernel_graph_thread: STOCK.graphThread.index },
    originals: { original_graph_thread: STOCK.graphThread.index },
    imports: {
      compute_dup: STOCK.dup.index,
      compute_rope: STOCK.rope.index,
      dequantize_row_q4_1: STOCK.dequantizeQ4_1.index,
      dequantize_row_q5_0: STOCK.dequantizeQ5_0.index,
      dequantize_row_q5_1: STOCK.dequantizeQ5_1.index,
      dequantize_row_q2_K: STOCK.dequantizeQ2_K.index,
      dequantize_row_q3_K: STOCK.dequantizeQ3_K.index,
      quantize_row_q4_0: STOCK.quantizeQ4_0.index,
      quantize_row_q4_1: STOCK.quantizeQ4_1.index,
      quantize_row_q5_0: STOCK.quantizeQ5_0.index,
      quantize_row_q5_1: STOCK.quantizeQ5_1.index,
      quantize_row_q8_0: STOCK.quantizeQ8_0.index,
    },
    splices: [GRAPH_SPLICE],
  },
  {
    what: "Dot products of one row and one column run in kernels of ours.",
    why: "llama.cpp's operators are left what ours do not cover, and call these.",
    check: "test/unit/wasm/vec-dots.test.ts",
    replace: Object.fromEntries(VEC_DOTS.map(({ kernel, index }) => [kernel, index])),
  },
  {
    what: "The server can be asked for results without computing a step, told how long a step may be, and made to leave one.",
    why: "Each result of several requests would cost a step else, and come late; long steps are quick, but a cancel may not wait for them.",
    check: "test/engine/latency.test.ts",
    replace: {
      kernel_update_slots: STOCK.updateSlots.index,
      kernel_process: STOCK.process.index,
      kernel_prompt_clear: STOCK.promptClear.index,
    },
    originals: {
      original_update_slots: STOCK.updateSlots.index,
      original_process: STOCK.process.index,
      original_prompt_clear: STOCK.promptClear.index,
    },
  },
  {
    what: "Under a grammar only text comes that an answer shows; a request ends with an error when no token fits.",
    why: "The package takes names of special tokens for text, and other bytes for characters; where none fits it may abort.",
    check: "test/unit/wasm/grammar.test.ts",
    replace: { kernel_decode_utf8: STOCK.decodeUtf8.index, kernel_grammar_apply: STOCK.grammarApply.index },
    originals: {
      original_decode_utf8: STOCK.decodeUtf8.index,
      original_grammar_apply: STOCK.grammarApply.index,
    },
    imports: {
      vocabulary_is_end: STOCK.isEnd.index,
      vocabulary_piece: STOCK.tokenToPiece.index,
      free_memory: STOCK.free.index,
    },
  },
  {
    what: "Grammars and answers that are nested too deep are refused, and a grammar's rules are checked once each.",
    why: "The package's functions call themselves until the stack ends, and look at the same rules for hours.",
    check: "test/engine/nesting.test.ts",
    replace: {
      kernel_peg_parse: STOCK.pegParse.index,
      kernel_peg_rule: STOCK.pegRule.index,
      kernel_left_recursion: STOCK.leftRecursion.index,
      kernel_parse_alternates: STOCK.parseAlternates.index,
    },
    originals: {
      original_peg_parse: STOCK.pegParse.index,
      original_peg_rule: STOCK.pegRule.index,
      original_left_recursion: STOCK.leftRecursion.index,
      original_parse_alternates: STOCK.parseAlternates.index,
    },
  },
  {
    what: "The tokeniser can be called.",
    why: "Routes count tokens and show them, and the package keeps its tokeniser to itself.",
    check: "test/engine/tokenizer.test.ts",
    exports: ADDED_EXPORTS,
  },
  {
    what: "The heap may grow to 16 GB.",
    why: "The package's ends at 4 GB, and with it the models.",
    check: "test/unit/wasm/large-heap.test.ts",
    memoryMaximum: IMAGE_HEAP_BYTES / PAGE_BYTES,
  },
];
