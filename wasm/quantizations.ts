/**
 * Quantized formats that the kernels multiply, by llama.cpp's names: the one place that names them on this side. In C it is
 * wasm/kernels/formats.h.
 */
export const QUANTIZATIONS = [
  { name: "q4_0", activations: "q8_0" },
  { name: "q4_1", activations: "q8_1" },
  { name: "q5_0", activations: "q8_0" },
  { name: "q5_1", activations: "q8_1" },
  { name: "q8_0", activations: "q8_0" },
  { name: "iq4_nl", activations: "q8_0" },
  { name: "mxfp4", activations: "q8_0" },
  { name: "q2_K", activations: "q8_K" },
  { name: "q3_K", activations: "q8_K" },
  { name: "q4_K", activations: "q8_K" },
  { name: "q5_K", activations: "q8_K" },
  { name: "q6_K", activations: "q8_K" },
  { name: "iq4_xs", activations: "q8_K" },
] as const;

/** Formats that a KV cache may have beside floats. */
export const CACHE_FORMATS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0"] as const;

/**
 * llama.cpp's dot products of one row and one column, which it calls where our operators do not reach: for matrices
 * whose rows are not a multiple of four, and for flash attention over a quantized cache.
 */
export const VEC_DOTS = QUANTIZATIONS.map(
  (each) =>
    ({
      kernel: `kernel_vec_dot_${each.name}`,
      name: `ggml_vec_dot_${each.name}_${each.activations}`,
    }) as {
      readonly kernel: string;
      readonly name: VecDotName<typeof each>;
    },
);

type VecDotName<Format extends { readonly name: string; readonly activations: string }> =
  Format extends unknown ? `ggml_vec_dot_${Format["name"]}_${Format["activations"]}` : never;
