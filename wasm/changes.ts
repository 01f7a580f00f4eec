import type { Splice } from "./linker/splice.ts";
import type { FUNCTIONS } from "./llama-cpp-build.ts";
import { CACHE_FORMATS, QUANTIZATIONS, VEC_DOTS } from "./quantizations.ts";
import { BARRIER_SPLICES, GRAPH_SPLICE, RESULT_SPLICE, STAGING_SPLICES } from "./splices.ts";

/** Name of a llama.cpp function. */
export type StockFunction = keyof typeof FUNCTIONS;

/** Largest heap of our engine, which is V8's limit. */
export const IMAGE_HEAP_BYTES = 16 * 1024 ** 3;

/** Kernels that save a slot and restore it, as the engine's script calls them. */
export const SLOT_KERNELS = [
  "daybreak_slot_tokens",
  "daybreak_slot_is_busy",
  "daybreak_slot_last_used",
  "daybreak_slot_size",
  "daybreak_slot_save",
  "daybreak_slot_restore",
  "daybreak_slot_erase",
  "daybreak_slot_scales",
  "daybreak_slot_adapt",
  "daybreak_slot_reserve",
  "daybreak_slot_release",
] as const;

const PAGE_BYTES = 64 * 1024;

/** Functions that the stock module does not export, by the names under which the engine's script calls them. */
export const ADDED_EXPORTS = {
  daybreak_tokenize: "llama_vocab::tokenize",
  daybreak_token_to_piece: "llama_vocab::token_to_piece",
} as const satisfies Record<string, StockFunction>;

/** One difference between our engine's WebAssembly and the stock one, and what the linker does for it. */
interface Change {
  readonly what: string;
  readonly why: string;
  /** The test that fails when the change does not do what it should. */
  readonly check: string;
  /** Kernel → the function that it replaces. kernel_x calls the replaced function as original_x. */
  readonly replace?: Readonly<Record<string, StockFunction>>;
  /** Name under which kernels call a llama.cpp function → that function. */
  readonly imports?: Readonly<Record<string, StockFunction>>;
  /** Name under which kernels call a function of llama.cpp's script → the name under which the module imports it. */
  readonly scriptCalls?: Readonly<Record<string, string>>;
  readonly splices?: readonly Splice[];
  readonly exports?: Readonly<Record<string, StockFunction>>;
  /** Kernels that the engine's script calls. */
  readonly exportedKernels?: readonly string[];
  /** In pages of 64 KiB. */
  readonly memoryMaximum?: number;
}

const sameName = <Name extends StockFunction>(names: readonly Name[]): Record<string, Name> =>
  Object.fromEntries(names.map((name) => [name, name]));

/** All changes to llama.cpp's WebAssembly. Patches of its script are in src/engine/core/*-patches.ts. */
export const CHANGES: readonly Change[] = [
  {
    what: "Matrix products run in our kernels, in a larger work buffer.",
    why: "They are nearly all of the work, and the package's are scalar code or what the compiler made of it.",
    check: "test/unit/wasm/kernels.test.ts",
    replace: { kernel_mul_mat: "ggml_compute_forward_mul_mat", kernel_graph_plan: "__wrap_ggml_graph_plan" },
  },
  {
    what: "Weights are repacked when a model has been loaded.",
    why: "Lanes of a vector are rows then, and a matrix is read as one stream.",
    check: "test/unit/wasm/repacked.test.ts",
    replace: { kernel_sched_reserve: "ggml_backend_sched_reserve" },
    imports: sameName(QUANTIZATIONS.map(({ name }) => `dequantize_row_${name}` as const)),
  },
  {
    what: "Threads that wait for each other fall asleep after a while.",
    why: "Those that spin take the processor from the one that they wait for, when there are fewer than threads.",
    check: "test/unit/wasm/barrier.test.ts",
    replace: {
      kernel_barrier: "ggml_barrier",
      kernel_secondary_thread: "ggml_graph_compute_secondary_thread",
    },
    imports: { ggml_barrier: "ggml_barrier" },
    splices: BARRIER_SPLICES,
  },
  {
    what: "What a usual graph holds is computed by our kernels, node by node; llama.cpp's function does the rest.",
    why: "Its compiler has copied the operators into one function, which V8 takes a second to optimize.",
    check: "test/unit/wasm/graph-thread.test.ts",
    replace: { kernel_graph_thread: "ggml_graph_compute_thread" },
    imports: {
      compute_dup: "ggml_compute_forward_dup",
      compute_rope: "void ggml_compute_forward_rope_flt<float>",
      ...sameName(CACHE_FORMATS.map((name) => `quantize_row_${name}` as const)),
    },
    splices: [GRAPH_SPLICE],
  },
  {
    what: "Dot products of one row and one column run in kernels of ours.",
    why: "llama.cpp's operators are left what ours do not cover, and call these.",
    check: "test/unit/wasm/vec-dots.test.ts",
    replace: Object.fromEntries(VEC_DOTS.map(({ kernel, name }) => [kernel, name])),
  },
  {
    what: "The server can be asked for results without computing a step, told how long a step may be, and made to leave one.",
    why: "Each result of several requests would cost a step else, and come late; long steps are quick, but a cancel may not wait for them.",
    check: "test/engine/latency.test.ts",
    replace: {
      kernel_update_slots: "server_context_impl::update_slots()",
      kernel_process: "llama_process",
      kernel_prompt_clear: "server_slot::prompt_clear()",
    },
  },
  {
    what: "A request begins with what any slot, or a store of ours, has of its prompt.",
    why: "llama.cpp's server overwrites what others begin with, and its own store loses what it gives back.",
    check: "test/engine/prompt-reuse.test.ts",
    replace: {
      kernel_tokenize_input: "server_context_impl::tokenize_cli_input",
      kernel_process_single_task: "server_context_impl::process_single_task",
    },
    imports: {
      copy_sequence: "common_memory::seq_cp",
      try_to_allocate: "emscripten_builtin_malloc",
    },
  },
  {
    what: "Tokens that a text repeats, or a small model says, are checked in one step, while that pays and a request wants it.",
    why: "The package's server does not guess unless it is told to, guesses on where it is wrong, and has a small model read all.",
    check: "test/unit/wasm/speculation.test.ts",
    replace: {
      kernel_speculative_init: "common_speculative_init",
      kernel_ngram_draft: "common_speculative_impl_ngram_simple::draft",
      kernel_draft_process: "common_speculative_impl_draft_simple::process",
      kernel_draft: "common_speculative_impl_draft_simple::draft",
    },
    imports: {
      allocate_memory: "operator new",
      batch_clear: "common_batch::clear()",
      batch_add: "common_batch::add",
      batch_part: "common_batch::get_sub_batch",
      remove_tokens: "common_context_seq_rm",
      last_position: "llama_kv_cache::seq_pos_max",
      last_position_iswa: "llama_kv_cache_iswa::seq_pos_max",
    },
    scriptCalls: { now_ms: "emscripten_get_now" },
  },
  {
    what: "An answer can begin with tokens that it is given, and tells the tokens that it has.",
    why: "An answer whose machine is gone goes on elsewhere, in the state of sampling, grammar and text that it had.",
    check: "test/engine/given-tokens.test.ts",
    replace: { kernel_sampler_sample: "common_sampler_sample" },
  },
  {
    what: "Under a grammar only text comes that an answer shows; a request ends with an error when no token fits.",
    why: "The package takes names of special tokens for text, and other bytes for characters; where none fits it may abort.",
    check: "test/unit/wasm/grammar.test.ts",
    replace: { kernel_decode_utf8: "decode_utf8", kernel_grammar_apply: "llama_grammar_apply_impl" },
    imports: {
      vocabulary_is_end: "llama_vocab::is_eog",
      vocabulary_piece: "llama_vocab::token_to_piece",
      free_memory: "emscripten_builtin_free",
    },
  },
  {
    what: "Grammars and answers that are nested too deep or can be read in too many ways are refused, and a grammar's rules are checked once each.",
    why: "The package's functions call themselves until the stack ends, and look at the same rules for hours.",
    check: "test/engine/nesting.test.ts",
    replace: {
      kernel_peg_parse: "common_peg_arena::parse",
      kernel_peg_rule: "parser_executor::operator()",
      kernel_left_recursion: "llama_grammar_detect_left_recursion",
      kernel_parse_alternates: "llama_grammar_parser::parse_alternates",
      kernel_advance_stack: "llama_grammar_advance_stack",
    },
  },
  {
    what: "Bytes that are not UTF-8 are replaced in results.",
    why: "One such alternative to a token makes the package lose the whole result, with the text and its log-probabilities.",
    check: "test/engine/byte-tokens.test.ts",
    splices: [RESULT_SPLICE],
  },
  {
    what: "The tokenizer can be called.",
    why: "Routes count tokens and show them, and the package keeps its tokenizer to itself.",
    check: "test/engine/tokenizer.test.ts",
    exports: ADDED_EXPORTS,
  },
  {
    what: "A slot's tokens and what was computed of them can be saved and restored.",
    why: "A conversation goes on after its model was unloaded, without being read again; the package offers no way to it.",
    check: "test/e2e/saved-prompts.test.ts",
    imports: {
      state_size: "llama_context::state_seq_get_size",
      get_state: "llama_state_seq_get_data_ext",
      set_state: "llama_state_seq_set_data_ext",
      push_token: "server_tokens::push_back",
    },
    exportedKernels: SLOT_KERNELS,
  },
  {
    what: "What a GPU is to compute is told to the script in one stream, and repeated by it where it has computed the same before.",
    why: "The package describes each program again for each token, in calls that take longer than a fast GPU needs.",
    check: "test/unit/wasm/gpu-replay.test.ts",
    replace: {
      kernel_gpu_build: "ggml_backend_webgpu_build_multi",
      kernel_gpu_graph: "ggml_backend_webgpu_graph_compute",
    },
    scriptCalls: { ask_gpu_script: "wgpuInstanceHasWGSLLanguageFeature" },
  },
  {
    what: "Weights for a GPU go there in pieces as they are read, and not through the heap.",
    why: "The package reads a whole tensor into the heap and copies it from there, so that a large one is in memory three times.",
    check: "test/gpu/loading.test.ts",
    imports: { read_file: "llama_file::read_raw", set_tensor: "ggml_backend_tensor_set" },
    splices: STAGING_SPLICES,
  },
  {
    what: "Which cells each token of a step sees is told by comparing positions, many at a time.",
    why: "The package looks at each cell for each token, which takes half of a prompt's time on a GPU's host.",
    check: "test/unit/wasm/attention-mask.test.ts",
    replace: { kernel_kq_mask: "llama_kv_cache_context::set_input_kq_mask" },
  },
  {
    what: "Where a step of one batch goes in the cache is looked up, and not tried out first.",
    why: "The package writes the step into the cache's records and takes it out again, to see whether the next batch fits as well.",
    check: "test/unit/wasm/cache-room.test.ts",
    replace: { kernel_prepare_cache: "llama_kv_cache::prepare" },
    imports: { find_cache_slot: "llama_kv_cache::find_slot" },
  },
  {
    what: "The clock stands still while a sampler is told the tokens of a prompt.",
    why: "The package reads it four times for each token, which takes a tenth of a prompt's time on a GPU's host.",
    check: "test/unit/wasm/held-clock.test.ts",
    replace: { kernel_init_sampler: "server_slot::init_sampler()", kernel_clock: "__clock_gettime" },
  },
  {
    what: "Names of a graph's tensors are put together without printf.",
    why: "A graph has a thousand of them, and is described anew for each step of a prompt.",
    check: "test/unit/wasm/tensor-names.test.ts",
    replace: { kernel_format_name: "ggml_format_name" },
  },
  {
    what: "The heap may grow to 16 GB.",
    why: "The package's ends at 4 GB, and with it the models.",
    check: "test/unit/wasm/large-heap.test.ts",
    memoryMaximum: IMAGE_HEAP_BYTES / PAGE_BYTES,
  },
];
