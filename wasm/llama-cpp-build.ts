/**
 * All that is known of one build of llama.cpp, the one in the package @wllama/wllama: where its functions, data and fields
 * are. scripts/wasm/move-build.ts writes this file; wasm/README.md says how to move to another build.
 */

/** Version of @wllama/wllama. */
export const WLLAMA_VERSION = "3.8.1";

/** Build of llama.cpp in it. */
export const LLAMA_CPP_BUILD = "b11364";

/** SHA-256 of the package's esm/wasm/wllama.wasm. An engine image is made of this file alone. */
export const STOCK_SHA256 = "551f13439366eff11e057b1b91fe46a7fdac29d56d67372d4c5f19a549dfe70c";

/** Functions by the name that the package's symbol map gives them: their indices. */
export const FUNCTIONS = {
  ggml_compute_forward_mul_mat: 2028,
  __wrap_ggml_graph_plan: 3340,
  ggml_backend_sched_reserve: 3096,
  dequantize_row_q4_0: 7297,
  dequantize_row_q8_0: 7290,
  dequantize_row_q4_K: 7295,
  dequantize_row_q5_K: 7292,
  dequantize_row_q6_K: 7291,
  dequantize_row_mxfp4: 7303,
  dequantize_row_iq4_xs: 7304,
  dequantize_row_iq4_nl: 7305,
  dequantize_row_q4_1: 7296,
  dequantize_row_q5_0: 7294,
  dequantize_row_q5_1: 7293,
  dequantize_row_q2_K: 7299,
  dequantize_row_q3_K: 7298,
  quantize_row_q4_0: 5787,
  quantize_row_q4_1: 5786,
  quantize_row_q5_0: 5784,
  quantize_row_q5_1: 5783,
  quantize_row_q8_0: 5780,
  ggml_barrier: 270,
  ggml_graph_compute_thread: 3053,
  ggml_compute_forward_dup: 2029,
  "void ggml_compute_forward_rope_flt<float>": 2239,
  ggml_graph_compute_secondary_thread: 7124,
  "server_context_impl::update_slots()": 5762,
  llama_process: 586,
  "server_slot::prompt_clear()": 1016,
  "server_context_impl::process_single_task": 5767,
  "server_context_impl::tokenize_cli_input": 5763,
  "common_memory::seq_cp": 3205,
  emscripten_builtin_malloc: 204,
  "llama_context::state_seq_get_size": 1586,
  llama_state_seq_get_data_ext: 1547,
  llama_state_seq_set_data_ext: 1546,
  "server_tokens::push_back": 949,
  common_speculative_init: 7430,
  "common_speculative_impl_ngram_simple::draft": 7432,
  "operator new": 68,
  "common_speculative_impl_draft_simple::process": 7447,
  "common_speculative_impl_draft_simple::draft": 7448,
  "common_batch::clear()": 658,
  "common_batch::add": 629,
  "common_batch::get_sub_batch": 628,
  common_context_seq_rm: 3216,
  "llama_kv_cache::seq_pos_max": 6767,
  "llama_kv_cache_iswa::seq_pos_max": 2869,
  "llama_vocab::tokenize": 1272,
  "llama_vocab::token_to_piece": 956,
  decode_utf8: 3144,
  llama_grammar_apply_impl: 6800,
  llama_grammar_advance_stack: 1580,
  "llama_vocab::is_eog": 724,
  "common_peg_arena::parse": 2077,
  "parser_executor::operator()": 5805,
  llama_grammar_detect_left_recursion: 2902,
  "llama_grammar_parser::parse_alternates": 2897,
  emscripten_builtin_free: 67,
  ggml_vec_dot_q4_0_q8_0: 7104,
  ggml_vec_dot_q4_1_q8_1: 7103,
  ggml_vec_dot_q5_0_q8_0: 7101,
  ggml_vec_dot_q5_1_q8_1: 7100,
  ggml_vec_dot_mxfp4_q8_0: 7110,
  ggml_vec_dot_q8_0_q8_0: 7097,
  ggml_vec_dot_iq4_nl_q8_0: 7112,
  ggml_vec_dot_q2_K_q8_K: 7106,
  ggml_vec_dot_q3_K_q8_K: 7105,
  ggml_vec_dot_q4_K_q8_K: 7102,
  ggml_vec_dot_q5_K_q8_K: 7099,
  ggml_vec_dot_q6_K_q8_K: 7098,
  ggml_vec_dot_iq4_xs_q8_K: 7111,
  quantize_row_q4_0_ref: 1879,
  quantize_row_q4_1_ref: 1878,
  quantize_row_q5_0_ref: 1876,
  quantize_row_q5_1_ref: 1875,
  quantize_row_q8_0_ref: 1872,
  quantize_row_q2_K_ref: 1881,
  quantize_row_q3_K_ref: 1880,
  quantize_row_q4_K_ref: 1877,
  quantize_row_q5_K_ref: 1874,
  quantize_row_q6_K_ref: 1873,
  quantize_row_tq1_0_ref: 1871,
  quantize_row_tq2_0_ref: 1870,
  quantize_row_mxfp4_ref: 1884,
  quantize_row_iq4_nl_impl: 1515,
  quantize_iq4_xs: 2655,
  quantize_iq3_s: 2656,
  iq3xs_init_impl: 2972,
  ggml_validate_row_data: 2017,
  ggml_fp16_to_fp32_row: 1167,
  ggml_cpu_bf16_to_fp32: 3084,
  ggml_cpu_fp32_to_fp16: 3081,
  ggml_cpu_fp32_to_bf16: 3082,
  dequantize_row_tq1_0: 7289,
  dequantize_row_tq2_0: 7288,
  dequantize_row_iq3_xxs: 7306,
  dequantize_row_iq3_s: 7307,
  dequantize_row_iq2_xxs: 7308,
  dequantize_row_iq2_xs: 7309,
  dequantize_row_iq2_s: 7310,
  dequantize_row_iq1_s: 7311,
  dequantize_row_iq1_m: 7312,
  ggml_backend_webgpu_build_multi: 1169,
  ggml_backend_webgpu_graph_compute: 7138,
  "llama_model_loader::load_all_data": 6345,
  "llama_file::read_raw": 1292,
  ggml_backend_tensor_set: 294,
} as const;

/**
 * Where the compiler has copied ggml_barrier into another function: the locals that hold the thread pool and the number of
 * barriers passed before, and how many copies use this pair.
 */
export const BARRIER_COPIES = [
  { function: "ggml_compute_forward_mul_mat", pool: 3, passed: 58, times: 1 },
  { function: "ggml_graph_compute_thread", pool: 1, passed: 124, times: 2 },
  { function: "ggml_graph_compute_thread", pool: 0, passed: 124, times: 1 },
] as const;

/** Locals of ggml_graph_compute_thread. */
export const GRAPH_LOCALS = { pool: 109, graph: 107 } as const;

/** Locals of llama_model_loader::load_all_data where it reads a tensor into memory of its own, and then sets it. */
export const STAGING_LOCALS = { data: 7, size: 1, tensor: 12 } as const;

/** Addresses of data. */
export const ADDRESSES = {
  vocabulary: 2115608,
  geluTable: 2392304,
  kvCacheClass: 526384,
  kvCacheIswaClass: 527072,
  server: 2115584,
} as const;

/** Offsets of fields within llama.cpp's structures, each with a function that reads or writes the field. */
export const OFFSETS = {
  "ggml_threadpool.cgraph": { at: 88, in: "ggml_graph_compute_thread" },
  "ggml_threadpool.n_graph": { at: 104, in: "ggml_barrier" },
  "ggml_threadpool.n_barrier": { at: 128, in: "ggml_barrier" },
  "ggml_threadpool.n_barrier_passed": { at: 192, in: "ggml_barrier" },
  "ggml_threadpool.abort": { at: 264, in: "ggml_graph_compute_thread" },
  "ggml_threadpool.poll": { at: 288, in: "ggml_graph_compute_secondary_thread" },
  "ggml_threadpool.ec": { at: 292, in: "ggml_graph_compute_thread" },
  "ggml_compute_state.threadpool": { at: 528, in: "ggml_graph_compute_secondary_thread" },
  "ggml_compute_state.ith": { at: 536, in: "ggml_graph_compute_secondary_thread" },
  "ggml_cplan.use_ref": { at: 48, in: "ggml_graph_compute_thread" },
  "llama_context.cparams.n_ctx": { at: 8, in: "llama_n_ctx" },
  "llama_context.cparams.n_batch": { at: 16, in: "llama_n_batch" },
  "llama_context.memory": { at: 256, in: "llama_context::decode" },
  "server_context_impl.ctx_tgt": { at: 6632, in: "server_context_impl::update_slots()" },
  "server_context_impl.lora_adapters": { at: 5136, in: "server_context_impl::launch_slot_with_task" },
  "server_context_impl.ctx_tgt_seq_rm_type": { at: 6792, in: "server_context_impl::load_model" },
  "server_context_impl.slots": { at: 6824, in: "server_context_impl::load_model" },
  "server_slot.task_prev": { at: 2752, in: "server_slot::reset()" },
  "server_slot.lora": { at: 3016, in: "server_context_impl::launch_slot_with_task" },
  "server_task.id_slot": { at: 20, in: "server_context_impl::process_single_task" },
  "server_task.id_parent": { at: 24, in: "server_slot::release()" },
  "server_task.params.cache_prompt": { at: 66, in: "server_context_impl::pre_decode()" },
  "server_task.params.lora": { at: 128, in: "server_context_impl::launch_slot_with_task" },
  "server_task.tokens.tokens": { at: 2352, in: "server_context_impl::launch_slot_with_task" },
  "server_task.cli": { at: 2376, in: "server_context_impl::process_single_task" },
  "server_task.type": { at: 2432, in: "server_context_impl::process_single_task" },
  "llama_batch_ext.tokens": { at: 64, in: "llama_context::decode" },
  "llama_kv_cache.hparams": { at: 16, in: "llama_kv_cache::state_read_meta" },
  "llama_kv_cache.n_swa": { at: 40, in: "llama_kv_cache::state_write" },
  "llama_kv_cache.swa_type": { at: 100, in: "llama_kv_cache::state_write" },
  "llama_kv_cache_iswa.kv_base": { at: 16, in: "llama_kv_cache_iswa::state_write" },
  "llama_hparams.rope_type": { at: 31992, in: "llama_kv_cache::state_read_meta" },
  "llama_hparams.token_ngrams": { at: 29260, in: "llama_kv_cache::state_read_meta" },
  "server_slot.ctx_tgt": { at: 8, in: "server_slot::prompt_save" },
  "server_slot.ctx_dft": { at: 16, in: "server_slot::prompt_save" },
  "server_slot.t_last_used": { at: 2760, in: "server_slot::release()" },
  "server_slot.n_ctx": { at: 2768, in: "server_context_impl::abort_all_slots" },
  "server_slot.state": { at: 2928, in: "server_slot::release()" },
  "server_tokens.tokens": { at: 32, in: "server_tokens::push_back" },
  "server_slot.task": { at: 2744, in: "server_slot::print_timings()" },
  "server_task.params.n_keep": { at: 76, in: "server_context_impl::pre_decode()" },
  "common_params_speculative.draft.n_max": { at: 56, in: "server_context_impl::load_model" },
  "common_speculative_impl_draft_simple.params.ctx_dft": {
    at: 288,
    in: "common_speculative_impl_draft_simple::process",
  },
  "common_speculative_impl_draft_simple.batch": {
    at: 1424,
    in: "common_speculative_impl_draft_simple::process",
  },
  "server_slot.prompt.tokens.map_idx_to_media": { at: 2960, in: "server_context_impl::pre_decode()" },
  "server_slot.prompt.tokens.tokens": { at: 2968, in: "server_slot::prompt_clear()" },
  "llama_grammar.stacks": { at: 32, in: "llama_grammar_apply_impl" },
  "llama_grammar.awaiting_trigger": { at: 65, in: "llama_grammar_apply_impl" },
  "webgpu_dispatch_desc.params": { at: 48, in: "ggml_backend_webgpu_build_multi" },
  "webgpu_dispatch_desc.bind_group_entries": { at: 72, in: "ggml_backend_webgpu_build_multi" },
  "webgpu_dispatch_desc.workgroups": { at: 96, in: "ggml_backend_webgpu_build_multi" },
  "webgpu_context.active_compute_pass": { at: 80, in: "ggml_backend_webgpu_build_multi" },
  "webgpu_context.batch_compute_passes": { at: 88, in: "ggml_backend_webgpu_build_multi" },
  "ggml_backend.context": { at: 144, in: "ggml_backend_webgpu_graph_compute" },
  "ggml_backend_buffer.context": { at: 96, in: "ggml_backend_webgpu_buffer_get_tensor" },
} as const;

/** Numbers of enum ggml_op. */
export const OPERATORS = {
  NONE: 0,
  DUP: 1,
  ADD: 2,
  ADD_ID: 3,
  SUB: 6,
  MUL: 7,
  DIV: 8,
  SUM_ROWS: 15,
  NORM: 24,
  RMS_NORM: 25,
  MUL_MAT: 29,
  MUL_MAT_ID: 30,
  SCALE: 32,
  CPY: 34,
  CONT: 35,
  RESHAPE: 36,
  TRANSPOSE: 39,
  GET_ROWS: 40,
  SET_ROWS: 42,
  SOFT_MAX: 46,
  ROPE: 48,
  CLAMP: 50,
  ARGSORT: 69,
  FLASH_ATTN_EXT: 74,
  UNARY: 91,
  GLU: 100,
} as const;

/** Numbers of enum ggml_unary_op. */
export const UNARY_OPERATORS = {
  RELU: 6,
  SIGMOID: 7,
  GELU: 8,
  SILU: 10,
} as const;

/** Numbers of enum ggml_glu_op. */
export const GATED_OPERATORS = {
  REGLU: 0,
  GEGLU: 1,
  SWIGLU: 2,
  SWIGLU_OAI: 3,
} as const;
