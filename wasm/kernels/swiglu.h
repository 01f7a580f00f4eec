// SwiGLU: x / (1 + e^-x) × gate. llama.cpp's WebAssembly calls the C library's expf for each number, which makes this the
// largest part of a step beside matrix products and attention (2 percent of a prompt's time at 1536 × 4608); with four
// numbers at once it is a fifth of that.
#pragma once
#include "exponential.h"

// Below -88, where the exponential is at its bound, the result is 0: what is left out is less than 1e-36.
INLINE vec silu(vec x) {
  const vec result = wasm_f32x4_div(x, wasm_f32x4_add(wasm_f32x4_const_splat(1), exp_f32x4(wasm_f32x4_neg(x))));
  return wasm_v128_andnot(result, wasm_f32x4_lt(x, wasm_f32x4_const_splat(-88)));
}

// ggml_vec_swiglu_f32. `out` may be `x` or `gate`.
void kernel_swiglu(int32_t n, float *out, const float *x, const float *gate) {
  int32_t i = 0;
  for (; i + 4 <= n; i += 4) store(out + i, wasm_f32x4_mul(silu(load(x + i)), load(gate + i)));
  for (; i < n; i++) out[i] = wasm_f32x4_extract_lane(silu(wasm_f32x4_splat(x[i])), 0) * gate[i];
}
