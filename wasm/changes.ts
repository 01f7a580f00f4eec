import type { Splice } from "./linker/splice.ts";
import type { FUNCTIONS } from "./llama-cpp-build.ts";
import { CACHE_FORMATS, QUANTIZATIONS, VEC_DOTS } from "./quantizations.ts";
import { BARRIER_SPLICES, GRAPH_SPLICE, RESULT_SPLICE, STAGING_SPLICES } from "./splices.ts";

/** Name of a function of llama.cpp. */
export type StockFunction = keyof typeof FUNCTIONS;

/** Largest heap of our engine: V8's limit. */
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

/** One difference between our engine's WebAssembly and the stock one, and the linker's work for it. */
interface Change {
  readonly what: string;
  readonly why: string;
  /** Test that fails when the change does not work. */
  readonly check: string;
  /** Kernel → the function that it replaces. kernel_x calls the replaced function as original_x. */
  readonly replace?: Readonly<Record<string, StockFunction>>;
  /** Name by which kernels call a function of llama.cpp → that function. */
  readonly imports?: Readonly<Record<string, StockFunction>>;
  /** Name by which kernels call a function of llama.cpp's script → name by which the module imports it. */
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
    why: "They are nearly all of the work, and the package's are scalar code or automatically vectorized.",
    check: "test/unit/wasm/kernels.test.ts",
    replace: { kernel_mul_mat: "ggml_compute_forward_mul_mat", kernel_graph_plan: "__wrap_ggml_graph_plan" },
  },
  {
    what: "Weights are repacked after a model is loaded.",
    why: "The lanes of a vector are then rows, and a matrix is read as one stream.",
    check: "test/unit/wasm/repacked.test.ts",
    replace: { kernel_sched_reserve: "ggml_backend_sched_reserve" },
    imports: sameName(QUANTIZATIONS.map(({ name }) => `dequantize_row_${name}` as const)),
  },
  {
    what: "Threads at a barrier sleep after spinning for a while.",
    why: "With fewer processors than threads, spinning threads take the processor from the one that they wait for.",
    check: "test/unit/wasm/barrier.test.ts",
    replace: {
      kernel_barrier: "ggml_barrier",
      kernel_secondary_thread: "ggml_graph_compute_secondary_thread",
    },
    imports: { ggml_barrier: "ggml_barrier" },
    splices: BARRIER_SPLICES,
  },
  {
    what: "Our kernels compute the operators of common graphs, node by node; llama.cpp's function computes the others.",
    why: "The compiler has inlined all operators into one function, which V8 takes a second to optimize.",
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
    what: "Dot products of one row and one column run in our kernels.",
    why: "llama.cpp's operators, which run where ours do not apply, call them.",
    check: "test/unit/wasm/vec-dots.test.ts",
    replace: Object.fromEntries(VEC_DOTS.map(({ kernel, name }) => [kernel, name])),
  },
  {
    what: "The server can return results without computing a step, limit the length of a step, and abort one.",
    why: "Otherwise each result of several requests costs a step and comes late. Long steps are efficient, but a cancel must not wait for them.",
    check: "test/engine/latency.test.ts",
    replace: {
      kernel_update_slots: "server_context_impl::update_slots()",
      kernel_process: "llama_process",
      kernel_prompt_clear: "server_slot::prompt_clear()",
    },
  },
  {
    what: "A request reuses the longest prefix of its prompt in any slot or in our prompt cache.",
    why: "llama.cpp's server overwrites prefixes that other requests need, and its prompt cache loses entries that it returns.",
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
    what: "Draft tokens, from repetitions of the text or a draft model, are verified in one step, if a request enables it and as long as it is faster.",
    why: "The package's server keeps guessing when its drafts are rejected, and lets the draft model read the complete text.",
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
    what: "An answer can begin with forced tokens, and reports its tokens.",
    why: "When a machine fails, another one continues its answers with the same state of sampling, grammar and text.",
    check: "test/engine/given-tokens.test.ts",
    replace: { kernel_sampler_sample: "common_sampler_sample" },
  },
  {
    what: "A grammar allows only tokens with visible text; a request ends with an error when no token fits.",
    why: "The package matches names of special tokens as text, and invalid bytes as characters; when no token fits, it may abort.",
    check: "test/unit/wasm/grammar.test.ts",
    replace: { kernel_decode_utf8: "decode_utf8", kernel_grammar_apply: "llama_grammar_apply_impl" },
    imports: {
      vocabulary_is_end: "llama_vocab::is_eog",
      vocabulary_piece: "llama_vocab::token_to_piece",
      free_memory: "emscripten_builtin_free",
    },
  },
  {
    what: "Grammars and answers that are nested too deeply or too ambiguous are rejected, and each rule of a grammar is checked once.",
    why: "The package's functions recurse until the stack overflows, and check the same rules for hours.",
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
    why: "With one such alternative to a token, the package loses the complete result, with the text and its log-probabilities.",
    check: "test/engine/byte-tokens.test.ts",
    splices: [RESULT_SPLICE],
  },
  {
    what: "The tokenizer is exported.",
    why: "Routes count and return tokens.",
    check: "test/engine/tokenizer.test.ts",
    exports: ADDED_EXPORTS,
  },
  {
    what: "A slot's tokens and their KV cache can be saved and restored.",
    why: "A conversation continues after its model was unloaded, without a second prefill; the package offers no function for it.",
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
    what: "Programs for a GPU are passed to the script in one stream, and known graphs are replayed.",
    why: "The package describes each program again for each token, in calls that take longer than a fast GPU needs.",
    check: "test/unit/wasm/gpu-replay.test.ts",
    replace: {
      kernel_gpu_build: "ggml_backend_webgpu_build_multi",
      kernel_gpu_graph: "ggml_backend_webgpu_graph_compute",
    },
    scriptCalls: { ask_gpu_script: "wgpuInstanceHasWGSLLanguageFeature" },
  },
  {
    what: "Weights for a GPU are uploaded in chunks while they are read, without a copy in the heap.",
    why: "The package reads a complete tensor into the heap and copies it from there, so that a large one is in memory three times.",
    check: "test/gpu/loading.test.ts",
    imports: { read_file: "llama_file::read_raw", set_tensor: "ggml_backend_tensor_set" },
    splices: STAGING_SPLICES,
  },
  {
    what: "The attention mask is computed by comparing the positions of many cells at a time.",
    why: "The package checks each cell for each token, which takes half of a prompt's time on a GPU's host.",
    check: "test/unit/wasm/attention-mask.test.ts",
    replace: { kernel_kq_mask: "llama_kv_cache_context::set_input_kq_mask" },
  },
  {
    what: "The cache cells for a step of one batch are looked up, without a trial.",
    why: "The package adds the step to the cache's records and removes it again, to check that the next batch fits, too.",
    check: "test/unit/wasm/cache-room.test.ts",
    replace: { kernel_prepare_cache: "llama_kv_cache::prepare" },
    imports: { find_cache_slot: "llama_kv_cache::find_slot" },
  },
  {
    what: "The clock is frozen while a sampler accepts the tokens of a prompt.",
    why: "The package reads it four times for each token, which takes a tenth of a prompt's time on a GPU's host.",
    check: "test/unit/wasm/held-clock.test.ts",
    replace: { kernel_init_sampler: "server_slot::init_sampler()", kernel_clock: "__clock_gettime" },
  },
  {
    what: "Names of a graph's tensors are formatted without printf.",
    why: "A graph has a thousand of them, and is built again for each step of a prompt.",
    check: "test/unit/wasm/tensor-names.test.ts",
    replace: { kernel_format_name: "ggml_format_name" },
  },
  {
    what: "The heap may grow to 16 GB.",
    why: "The package's limit of 4 GB also limits the models.",
    check: "test/unit/wasm/large-heap.test.ts",
    memoryMaximum: IMAGE_HEAP_BYTES / PAGE_BYTES,
  },
];
