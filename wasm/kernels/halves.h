// Floats as halves, to nearest even: four numbers at once.
#pragma once
#include "simd.h"

// The bits of a half in each lane, the sign in those above as well.
INLINE vec halves_of_f32(vec x) {
  const vec magnitude = wasm_v128_and(x, wasm_i32x4_const_splat(0x7fffffff));
  const vec odd = wasm_v128_and(wasm_u32x4_shr(magnitude, 13), wasm_i32x4_const_splat(1));
  // Rounds up what is more than half of the last place, and half of it when that is odd; then takes 112 from the exponent.
  const vec rounded = wasm_i32x4_add(wasm_i32x4_add(magnitude, wasm_i32x4_const_splat(0xfff - (112 << 23))), odd);
  const vec normal = wasm_u32x4_shr(rounded, 13);
  // The spacing of floats at 0.5 is 2^-24, that of subnormal halves.
  const vec half = wasm_f32x4_const_splat(0.5f);
  const vec subnormal = wasm_i32x4_sub(wasm_f32x4_add(magnitude, half), half);
  const vec is_small = wasm_i32x4_lt(magnitude, wasm_i32x4_const_splat(0x38800000));
  vec bits = wasm_v128_bitselect(subnormal, normal, is_small);
  const vec is_large = wasm_i32x4_ge(magnitude, wasm_i32x4_const_splat(0x47800000 - 0x1000));
  const vec is_nan = wasm_i32x4_gt(magnitude, wasm_i32x4_const_splat(0x7f800000));
  const vec large = wasm_i32x4_add(wasm_i32x4_const_splat(0x7c00), wasm_v128_and(is_nan, wasm_i32x4_const_splat(0x200)));
  bits = wasm_v128_bitselect(large, bits, is_large);
  return wasm_v128_or(bits, wasm_v128_and(wasm_i32x4_shr(x, 16), wasm_i32x4_const_splat((int32_t)0xffff8000)));
}

INLINE void store_as_halves(uint16_t *to, const float *from, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    store(to + i, wasm_i16x8_narrow_i32x4(halves_of_f32(load(from + i)), halves_of_f32(load(from + i + 4))));
  }
  for (; i < count; i++) to[i] = (uint16_t)wasm_i32x4_extract_lane(halves_of_f32(wasm_f32x4_splat(from[i])), 0);
}

// Any half as a float: infinity and NaN, too, and subnormal ones.
INLINE vec f32_of_halves(vec halves) {
  const vec magnitude = wasm_v128_and(halves, wasm_i32x4_const_splat(0x7fff));
  const vec normal = wasm_i32x4_add(wasm_i32x4_shl(magnitude, 13), wasm_i32x4_const_splat(112 << 23));
  const vec subnormal = wasm_f32x4_mul(to_f32(magnitude), wasm_f32x4_const_splat(0x1p-24f));
  vec value = wasm_v128_bitselect(subnormal, normal, wasm_i32x4_lt(magnitude, wasm_i32x4_const_splat(0x400)));
  const vec is_large = wasm_i32x4_ge(magnitude, wasm_i32x4_const_splat(0x7c00));
  value = wasm_i32x4_add(value, wasm_v128_and(is_large, wasm_i32x4_const_splat(112 << 23)));
  return wasm_v128_or(value, wasm_i32x4_shl(wasm_v128_and(halves, wasm_i32x4_const_splat(0x8000)), 16));
}
