export interface PinnedFunction {
  readonly index: number;
  /** As the package's symbol map has it. */
  readonly name: string;
  /** SHA-256 of the body. */
  readonly sha256: string;
}

/** Functions of the stock module that ours refer to. */
export const PINNED_FUNCTIONS = {
  mulMat: {
    index: 2028,
    name: "ggml_compute_forward_mul_mat",
    sha256: "08ac6b723340006b1546f28b21a22fea175e9f9da9d443c16c9092e5bf3f4d6d",
  },
  graphPlan: {
    index: 3340,
    name: "__wrap_ggml_graph_plan",
    sha256: "0d6992b17837bc0472b2f32be2fb42b4597d785a89cc95d84d5d9ee9b127b6f1",
  },
  schedReserve: {
    index: 3096,
    name: "ggml_backend_sched_reserve",
    sha256: "77bdcc1f99ec3f1703d918fbfc49e1e111e2afeb7a9df6af84da29fb26f484ed",
  },
  dequantizeQ4_0: {
    index: 7297,
    name: "dequantize_row_q4_0",
    sha256: "b9d73f4b569331007ffde63924277d3710bbe4d82e5d3856aaddc7ed09b5de28",
  },
  dequantizeQ8_0: {
    index: 7290,
    name: "dequantize_row_q8_0",
    sha256: "e9fff903ae0b7fe1e28b75940c803453268383deb21c66d3bb00c3017c876060",
  },
  dequantizeQ4_K: {
    index: 7295,
    name: "dequantize_row_q4_K",
    sha256: "36ec93c4e89ad5a31aec58c93db3f50c3b458c60803a0500dba0ee5857f0c994",
  },
  dequantizeQ5_K: {
    index: 7292,
    name: "dequantize_row_q5_K",
    sha256: "e691e6e7458038f776e4aca368dfb1be76e1fec545bd101a05f67a6c7d2b5510",
  },
  dequantizeQ6_K: {
    index: 7291,
    name: "dequantize_row_q6_K",
    sha256: "3584fa7705daf8aa963d2e9b466af259b5ce64dfcfcebae3351f55bd5628a4b5",
  },
  dequantizeMxfp4: {
    index: 7303,
    name: "dequantize_row_mxfp4",
    sha256: "5cfd3a3e591281440c7570186a0c6a45b23a4ac5040ea1cf309066a06d2d1cac",
  },
  dequantizeIq4Xs: {
    index: 7304,
    name: "dequantize_row_iq4_xs",
    sha256: "f079e3788959a1cd02f651772cf83043b487f067df449e84c04ce9f32223fad0",
  },
  dequantizeIq4Nl: {
    index: 7305,
    name: "dequantize_row_iq4_nl",
    sha256: "01f3d89db9dcbe51f47873833bdce4da357b1e32160162991a8661a85f842447",
  },
  dequantizeQ4_1: {
    index: 7296,
    name: "dequantize_row_q4_1",
    sha256: "084a07b0632122fe059f762d70eae4c0a60e005b0f23aff190f84a22ecd9f59c",
  },
  dequantizeQ5_0: {
    index: 7294,
    name: "dequantize_row_q5_0",
    sha256: "807a94070ab99443b617c30202999184cad055006eb31af3d19ef43b27dbef99",
  },
  dequantizeQ5_1: {
    index: 7293,
    name: "dequantize_row_q5_1",
    sha256: "983bce501ca74b12dfc768d61a6bcfa5751a77db55f464f958bdfe64dfa3840b",
  },
  dequantizeQ2_K: {
    index: 7299,
    name: "dequantize_row_q2_K",
    sha256: "3c7c61cc42c31159a23d52501e5b1552b2b2b1bd13998d4d691a03a92e9b890f",
  },
  dequantizeQ3_K: {
    index: 7298,
    name: "dequantize_row_q3_K",
    sha256: "7782729784e82bed2c2658305bd6c66d8512e90ecf427fa1d2f3be2a8853f035",
  },
  quantizeQ4_0: {
    index: 5787,
    name: "quantize_row_q4_0",
    sha256: "d5324856b8fcfb99ebfcd00439d793f8692cf066c27092cee20d1dd07ef22d07",
  },
  quantizeQ4_1: {
    index: 5786,
    name: "quantize_row_q4_1",
    sha256: "61b8a9354a6445d1dfdbfb8b344822d8d558ff77dcc2cf7e1daee63809922ce5",
  },
  quantizeQ5_0: {
    index: 5784,
    name: "quantize_row_q5_0",
    sha256: "c319b00ae05e719ca8459a81746bee2233c7c7e923ae88a96c7d5faa9f5ef85b",
  },
  quantizeQ5_1: {
    index: 5783,
    name: "quantize_row_q5_1",
    sha256: "31150ccd5eabe70d6fd7fed2b82adef5ca812b9ed1f8ab325a9b45813e456af8",
  },
  quantizeQ8_0: {
    index: 5780,
    name: "quantize_row_q8_0",
    sha256: "d69b5694c6eb5a0d8a56de8cb6ce86114ac4614aff0d590a6df253a4ef49a449",
  },
  barrier: {
    index: 270,
    name: "ggml_barrier",
    sha256: "1b11245c9a5f03b38643c7909098dd33e20a0d51ab238ec545e3a02a001418a0",
  },
  graphThread: {
    index: 3053,
    name: "ggml_graph_compute_thread",
    sha256: "e6f62651522fc9a34d05f01d8e7822b559378ea7a30e030ca90591a16eabf821",
  },
  dup: {
    index: 2029,
    name: "ggml_compute_forward_dup",
    sha256: "82d9c382bb5fe646d7e39b06be774bb90ceb5dea140a085bf32520821b793a6c",
  },
  rope: {
    index: 2239,
    name: "void ggml_compute_forward_rope_flt<float>",
    sha256: "9a596f5e756f8fe036a8900ff6b5aa8c7e15984bc5d8107771a0466188617c05",
  },
  secondaryThread: {
    index: 7124,
    name: "ggml_graph_compute_secondary_thread",
    sha256: "c405b03e41b858822667f4b45842bd565e206453cf3f7ee588c68a2b559bd976",
  },
  updateSlots: {
    index: 5762,
    name: "server_context_impl::update_slots()",
    sha256: "2acad40cad75ee13e025cc6e6b5803592b43ccb50f761c09433d82b5ccda9fdd",
  },
  process: {
    index: 586,
    name: "llama_process",
    sha256: "0b76a2aa17452d34f9dfdbc226329321c220b7c5972e649cd49bb3724d8f3125",
  },
  promptClear: {
    index: 1016,
    name: "server_slot::prompt_clear()",
    sha256: "d3759cd9683fc32e2025d39a3db0d994b02f6a536ff4d8ac44d89b13a0ae7a29",
  },
  tokenize: {
    index: 1272,
    name: "llama_vocab::tokenize",
    sha256: "c7536e4edf8243d7f76a2b6add8b2a88bfa4563f5889059f0c5f1ab73911d2d2",
  },
  tokenToPiece: {
    index: 956,
    name: "llama_vocab::token_to_piece",
    sha256: "cf9da726ad03e54e0ba112be8273242b1caaf031fc1c0b63fff309debbae7a52",
  },
  decodeUtf8: {
    index: 3144,
    name: "decode_utf8",
    sha256: "c268a99949457801c53aa3f60c928cfc6a45a9860848c2209cdfdb03cf56d50c",
  },
  grammarApply: {
    index: 6800,
    name: "llama_grammar_apply_impl",
    sha256: "9f1238ffc25f70cc953f5b7b72b69b5f2c2f0317252d54f1e7e9678436e0a0fd",
  },
  isEnd: {
    index: 724,
    name: "llama_vocab::is_eog",
    sha256: "30bb8a3c616db4f75fe261778431c57b962a4a2f70244bec6e0228d15f8e8b94",
  },
  pegParse: {
    index: 2077,
    name: "common_peg_arena::parse",
    sha256: "d1ce81c6555d71972fd8f31f826bb0602eac8ab9602c6ed48dac971c20642f63",
  },
  pegRule: {
    index: 5805,
    name: "parser_executor::operator()",
    sha256: "c0b5128b674a3c9297439eeca8b161055aef613fbdc24ffd0b65a1d61925e6a0",
  },
  leftRecursion: {
    index: 2902,
    name: "llama_grammar_detect_left_recursion",
    sha256: "b126075f2406649bc595df2c39a55a1fdeb4f65b25935c07291723efe6817862",
  },
  parseAlternates: {
    index: 2897,
    name: "llama_grammar_parser::parse_alternates",
    sha256: "20316b62f000bcb7b94e0093c560a827b2934e672a780ea8a78730124b15d3c6",
  },
  free: {
    index: 67,
    name: "emscripten_builtin_free",
    sha256: "dbc723404fe2b6f0667f3cb2de5d4d083fd4e5b31ee0a7055c54f0896a089dc3",
  },
} as const satisfies Record<string, PinnedFunction>;
