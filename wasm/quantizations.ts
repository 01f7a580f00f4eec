/**
 * Quantized formats that the kernels multiply, by llama.cpp's names. The C side's table is wasm/kernels/formats.h.
 */
export const QUANTIZATIONS = [
  { name: "q4_0", dot: "ggml_vec_dot_q4_0_q8_0" },
  { name: "q4_1", dot: "ggml_vec_dot_q4_1_q8_1" },
  { name: "q5_0", dot: "ggml_vec_dot_q5_0_q8_0" },
  { name: "q5_1", dot: "ggml_vec_dot_q5_1_q8_1" },
  { name: "q8_0", dot: "ggml_vec_dot_q8_0_q8_0" },
  { name: "iq4_nl", dot: "ggml_vec_dot_iq4_nl_q8_0" },
  { name: "mxfp4", dot: "ggml_vec_dot_mxfp4_q8_0" },
  { name: "q2_K", dot: "ggml_vec_dot_q2_K_q8_K" },
  { name: "q3_K", dot: "ggml_vec_dot_q3_K_q8_K" },
  { name: "q4_K", dot: "ggml_vec_dot_q4_K_q8_K" },
  { name: "q5_K", dot: "ggml_vec_dot_q5_K_q8_K" },
  { name: "q6_K", dot: "ggml_vec_dot_q6_K_q8_K" },
  { name: "iq4_xs", dot: "ggml_vec_dot_iq4_xs_q8_K" },
] as const;

/** Quantized formats of a KV cache. */
export const CACHE_FORMATS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0"] as const;

/**
 * llama.cpp's dot products of one row and one column. It calls them where our operators do not apply: for matrices whose
 * number of rows is not a multiple of four, and for flash attention over a quantized cache.
 */
export const VEC_DOTS = QUANTIZATIONS.map(({ name, dot }) => ({
  kernel: `kernel_vec_dot_${name}`,
  name: dot,
}));
