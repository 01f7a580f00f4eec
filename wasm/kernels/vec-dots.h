// Dot products of one row and one column in llama.cpp's own layouts, replacing its ggml_vec_dot functions. llama.cpp calls
// them where our operators do not apply: for flash attention over a quantized cache, and for matrices whose number of rows is
// not a multiple of four.
//
// The column is block_q8_0 (f16 d, 32 × i8) for formats that have no minimum, block_q8_1 (f16 d, f16 d × sum, 32 × i8)
// for those that have one, and block_q8_K for the k-quants.
#pragma once
#include "quantized-matrix.h"

enum { BYTES_Q8_1 = 36 };

// ggml_vec_dot_t: strides are for several rows at once, which this build never asks for.
#define VEC_DOT(name) \
  void name(int32_t n, float *result, size_t result_stride, const uint8_t *x, size_t x_stride, const uint8_t *y, size_t y_stride, int32_t rows)
#define UNUSED (void)result_stride, (void)x_stride, (void)y_stride, (void)rows

// Scale of a block of a column: unlike those of weights, it may be infinite or NaN, which must be preserved.
INLINE float column_scale(const uint8_t *y) {
  const uint16_t half = *(const uint16_t *)y;
  if ((half & 0x7c00) != 0x7c00) return f16_to_f32(y);
  return half & 0x3ff ? __builtin_nanf("") : half & 0x8000 ? -__builtin_inff() : __builtin_inff();
}

INLINE float dot_unsigned(int32_t n, const uint8_t *x, const uint8_t *y, block_format format, vec codes) {
  const constants k = make_constants(codes);
  const vec offset = wasm_i8x16_splat((int8_t)format.offset);
  vec acc = ZERO_F32;
  float minimums = 0;
  for (int32_t b = 0; b < n / 32; b++, x += format.bytes, y += format.has_minimum ? BYTES_Q8_1 : BYTES_Q8_0) {
    const uint8_t *yq = y + (format.has_minimum ? 4 : 2);
    const bytes32 w = unpack_unsigned(x, format, &k);
    const vec low = load(yq), high = load(yq + 16);
    vec dots = wasm_i16x8_add(dot_i8_u7(low, w.low), dot_i8_u7(high, w.high));
    if (!format.has_minimum) {
      dots = wasm_i16x8_sub(dots, wasm_i16x8_add(dot_i8_u7(low, offset), dot_i8_u7(high, offset)));
    }
    const float d = format.is_mxfp4 ? half_power_of_two(x[0]) : f16_to_f32(x);
    acc = madd(to_f32(pair_sums_i32(dots)), wasm_f32x4_splat(d * column_scale(y)), acc);
    if (format.has_minimum) minimums += f16_to_f32(x + 2) * f16_to_f32(y + 2);
  }
  return sum_f32(acc) + minimums;
}

INLINE float dot_signed(int32_t n, const uint8_t *x, const uint8_t *y, block_format format, int is_q8_0, vec codes) {
  const constants k = make_constants(codes);
  vec acc = ZERO_F32;
  for (int32_t b = 0; b < n / 32; b++, x += format.bytes, y += BYTES_Q8_0) {
    const words32 w = widen_block(x, format, is_q8_0, &k), v = widen_block(y, FORMAT_Q8_0, 1, &k);
    vec dots = wasm_i32x4_dot_i16x8(w.part[0], v.part[0]);
    for (int i = 1; i < 4; i++) dots = wasm_i32x4_add(dots, wasm_i32x4_dot_i16x8(w.part[i], v.part[i]));
    acc = madd(to_f32(dots), wasm_f32x4_splat(f16_to_f32(x) * column_scale(y)), acc);
  }
  return sum_f32(acc);
}

// Two rows that are the same one: the compiler leaves one of them.
INLINE float dot_super_blocks(int32_t n, const uint8_t *x, const uint8_t *y, super_format format) {
  float results[2];
  const gemv_columns column = {y, 0, 0, 0, 1};
  gemv_super_blocks(x, 0, n / SUPER_BLOCK, column, 1, (gemv_results){results, 1, 0}, make_constants(codes_iq4_nl()), format);
  return results[0];
}

#define DOT(NAME, name, type, bytes, wide, granule, planes, multiply, offset, codes) \
  VEC_DOT(kernel_vec_dot_##name) { UNUSED; *result = dot_unsigned(n, x, y, FORMAT_##NAME, codes); }
UNSIGNED_FORMATS(DOT)
#undef DOT
#define DOT(NAME, name, type, bytes, wide, granule, planes, multiply, offset, is_q8_0, codes) \
  VEC_DOT(kernel_vec_dot_##name) { UNUSED; *result = dot_signed(n, x, y, FORMAT_##NAME, is_q8_0, codes); }
SIGNED_FORMATS(DOT)
#undef DOT
#define DOT(NAME, name, ...) \
  VEC_DOT(kernel_vec_dot_##name) { UNUSED; *result = dot_super_blocks(n, x, y, SUPER_##NAME); }
SUPER_FORMATS(DOT)
#undef DOT
