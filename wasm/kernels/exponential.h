// e^x for four floats at once, where llama.cpp's WebAssembly calls the C library's expf for each number.
#pragma once
#include "simd.h"

// x = n ln 2 + r with |r| at most ln 2 / 2, and e^r by a polynomial (that of ggml_v_expf): 1.5 units in the last place.
// Adding 1.5 × 2^23 rounds to whole numbers and leaves n in the low bits. Below -88.03 the result is 0, where a float
// would become subnormal; above 88.03 it stays at 2^127 and less. NaN stays NaN.
INLINE vec exp_f32x4(vec x) {
  const vec magic = wasm_f32x4_const_splat(0x1.8p23f);
  const vec low = wasm_f32x4_const_splat(-127 * 0x1.62e43p-1f), high = wasm_f32x4_const_splat(127 * 0x1.62e43p-1f);
  const vec bounded = wasm_f32x4_pmin(wasm_f32x4_pmax(x, low), high);
  const vec shifted = madd(bounded, wasm_f32x4_const_splat(0x1.715476p+0f), magic), n = wasm_f32x4_sub(shifted, magic);
  const vec r = nmadd(n, wasm_f32x4_const_splat(0x1.7f7d1cp-20f), nmadd(n, wasm_f32x4_const_splat(0x1.62e4p-1f), bounded));
  const vec square = wasm_f32x4_mul(r, r);
  const vec upper = madd(r, wasm_f32x4_const_splat(0x1.0e4020p-7f), wasm_f32x4_const_splat(0x1.573e2ep-5f));
  const vec lower = madd(r, wasm_f32x4_const_splat(0x1.555e66p-3f), wasm_f32x4_const_splat(0x1.fffdb6p-2f));
  const vec rest = madd(madd(upper, square, lower), square, wasm_f32x4_mul(r, wasm_f32x4_const_splat(0x1.ffffecp-1f)));
  const vec power = wasm_i32x4_add(wasm_i32x4_shl(shifted, 23), wasm_i32x4_const_splat(0x3f800000));
  return madd(power, rest, power);
}

INLINE float exp_f32(float x) { return wasm_f32x4_extract_lane(exp_f32x4(wasm_f32x4_splat(x)), 0); }
