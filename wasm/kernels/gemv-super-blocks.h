// Matrix × vector for the k-quants: two rows at a time against one column of llama.cpp's q8_K.
//
// Within a super-block everything is integer: byte dot products to i16, times the group's scale to i32 (one vpmaddwd
// does both the product and the pairwise sum), so that only one conversion and one FMA per super-block remain.
// Registers: per row one i32 accumulator, one or two of scales; 2 of activations; constants.
#pragma once
#include "gemv-blocks.h"

// i16 number `j` of a vector in all lanes; j has to be a constant.
#define splat_i16(v, j)                                                                                          \
  wasm_i8x16_shuffle(v, v, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, \
                     2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1)

INLINE vec widen_u8(uint64_t eight_bytes) {
  return wasm_u16x8_extend_low_u8x16(wasm_i64x2_make((int64_t)eight_bytes, 0));
}

INLINE float q8_K_scale(const uint8_t *y) {
  float scale;
  __builtin_memcpy(&scale, y, sizeof scale);
  return scale;
}

// Sums of each 32 activations as 8 × i16; a sum of 32 bytes fits.
INLINE vec sums_of_32(const uint8_t *y) {
  return wasm_i16x8_narrow_i32x4(pair_sums_i32(load(y + Q8_K_SUMS)), pair_sums_i32(load(y + Q8_K_SUMS + 16)));
}

#define FOR_EIGHT_GROUPS(BODY) BODY(0) BODY(1) BODY(2) BODY(3) BODY(4) BODY(5) BODY(6) BODY(7)

// --- one scale for each 32: Q4_K, Q5_K, IQ4_XS ------------------------------------------------------------------

INLINE vec super_block_q45_K(const uint8_t *x, const uint8_t *y, vec acc, int five_bits, const constants *k) {
  const packed_scales packed = scales_q4_K(x + 4);
  const vec scales = widen_u8(packed.scales), mins = widen_u8(packed.mins);
  vec sum = ZERO_I32;
#define GROUP(g)                                                                                                 \
  {                                                                                                              \
    const bytes32 w = five_bits ? group_q5_K(x, g, k) : group_q4_K(x + 16, g, k);                                \
    const vec dots = wasm_i16x8_add(dot_i8_u7(load(y + Q8_K_QUANTS + 32 * g), w.low),                            \
                                    dot_i8_u7(load(y + Q8_K_QUANTS + 32 * g + 16), w.high));                     \
    sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(dots, splat_i16(scales, g)));                                 \
  }
  FOR_EIGHT_GROUPS(GROUP)
#undef GROUP
  const float d = q8_K_scale(y);
  acc = madd(to_f32(sum), wasm_f32x4_splat(d * f16_to_f32(x)), acc);
  return nmadd(to_f32(wasm_i32x4_dot_i16x8(sums_of_32(y), mins)), wasm_f32x4_splat(d * f16_to_f32(x + 2)), acc);
}

INLINE vec super_block_iq4_xs(const uint8_t *x, const uint8_t *y, vec acc, const constants *k) {
  vec sum = ZERO_I32;
#define GROUP(g)                                                                                                 \
  {                                                                                                              \
    const bytes32 w = group_iq4_xs(x, g, k);                                                                     \
    const uint8_t *yq = y + Q8_K_QUANTS + 32 * g;                                                                \
    vec dots = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(w.low), wasm_i16x8_load8x8(yq));                 \
    dots = wasm_i32x4_add(dots, wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(w.low), wasm_i16x8_load8x8(yq + 8))); \
    dots = wasm_i32x4_add(dots, wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(w.high), wasm_i16x8_load8x8(yq + 16))); \
    dots = wasm_i32x4_add(dots, wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(w.high), wasm_i16x8_load8x8(yq + 24))); \
    sum = wasm_i32x4_add(sum, wasm_i32x4_mul(dots, wasm_i32x4_splat(scale_iq4_xs(x, g))));                       \
  }
  FOR_EIGHT_GROUPS(GROUP)
#undef GROUP
  return madd(to_f32(sum), wasm_f32x4_splat(q8_K_scale(y) * f16_to_f32(x)), acc);
}

// --- one scale for each 16: Q2_K, Q3_K, Q6_K --------------------------------------------------------------------

typedef struct {
  vec low;  // scales of 16-groups 0..7 as i16
  vec high; // 8..15
} scales16;

INLINE scales16 widen_i8(vec bytes) {
  return (scales16){wasm_i16x8_extend_low_i8x16(bytes), wasm_i16x8_extend_high_i8x16(bytes)};
}

// Sum over 16-groups of a factor times the sum of the activations.
INLINE vec weighted_sums(const uint8_t *y, scales16 factors) {
  return wasm_i32x4_add(wasm_i32x4_dot_i16x8(load(y + Q8_K_SUMS), factors.low),
                        wasm_i32x4_dot_i16x8(load(y + Q8_K_SUMS + 16), factors.high));
}

#define SUM_OF_16S(UNPACK, sum, scales)                                                                          \
  FOR_EIGHT_GROUPS_16(UNPACK, sum, scales, 0, low)                                                               \
  FOR_EIGHT_GROUPS_16(UNPACK, sum, scales, 4, high)
#define FOR_EIGHT_GROUPS_16(UNPACK, sum, scales, first, part)                                                    \
  GROUP_16(UNPACK, sum, scales.part, first, 0)                                                                   \
  GROUP_16(UNPACK, sum, scales.part, first, 1)                                                                   \
  GROUP_16(UNPACK, sum, scales.part, first, 2)                                                                   \
  GROUP_16(UNPACK, sum, scales.part, first, 3)
#define GROUP_16(UNPACK, sum, scales, first, i)                                                                  \
  {                                                                                                              \
    const bytes32 w = UNPACK(first + i);                                                                         \
    const uint8_t *yq = y + Q8_K_QUANTS + 32 * (first + i);                                                      \
    sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(dot_i8_u7(load(yq), w.low), splat_i16(scales, 2 * i)));       \
    sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(dot_i8_u7(load(yq + 16), w.high), splat_i16(scales, 2 * i + 1))); \
  }

INLINE vec super_block_q6_K(const uint8_t *x, const uint8_t *y, vec acc, const constants *k) {
  const scales16 scales = widen_i8(load(x + 192));
  vec sum = wasm_i32x4_neg(wasm_i32x4_shl(weighted_sums(y, scales), 5));
#define UNPACK(g) group_q6_K(x, g, k)
  SUM_OF_16S(UNPACK, sum, scales)
#undef UNPACK
  return madd(to_f32(sum), wasm_f32x4_splat(q8_K_scale(y) * f16_to_f32(x + 208)), acc);
}

INLINE vec super_block_q3_K(const uint8_t *x, const uint8_t *y, vec acc) {
  const scales16 scales = widen_i8(scales_q3_K(x + 96));
  vec sum = wasm_i32x4_neg(wasm_i32x4_shl(weighted_sums(y, scales), 2));
#define UNPACK(g) group_q3_K(x, g)
  SUM_OF_16S(UNPACK, sum, scales)
#undef UNPACK
  return madd(to_f32(sum), wasm_f32x4_splat(q8_K_scale(y) * f16_to_f32(x + 108)), acc);
}

INLINE vec super_block_q2_K(const uint8_t *x, const uint8_t *y, vec acc, const constants *k) {
  const vec packed = load(x);
  const scales16 scales = widen_i8(low_nibbles(packed, k));
  vec sum = ZERO_I32;
#define UNPACK(g) group_q2_K(x, g)
  SUM_OF_16S(UNPACK, sum, scales)
#undef UNPACK
  const float d = q8_K_scale(y);
  acc = madd(to_f32(sum), wasm_f32x4_splat(d * f16_to_f32(x + 80)), acc);
  return nmadd(to_f32(weighted_sums(y, widen_i8(high_nibbles(packed, k)))), wasm_f32x4_splat(d * f16_to_f32(x + 82)),
               acc);
}

// --- two rows ---------------------------------------------------------------------------------------------------

#define DEFINE_GEMV_SUPER_BLOCKS(name, bytes, ...)                                                               \
  NOINLINE void name(const uint8_t *x0, size_t row_bytes, int64_t super_blocks, const uint8_t *y, float *out,    \
                     int64_t stride, constants k) {                                                              \
    (void)k;                                                                                                     \
    const uint8_t *x1 = x0 + row_bytes;                                                                          \
    vec acc0 = ZERO_F32, acc1 = ZERO_F32;                                                                        \
    for (int64_t s = 0; s < super_blocks; s++, x0 += bytes, x1 += bytes, y += Q8_K_BYTES) {                      \
      const uint8_t *x = x0;                                                                                     \
      vec acc = acc0;                                                                                            \
      acc0 = __VA_ARGS__;                                                                                        \
      x = x1, acc = acc1;                                                                                        \
      acc1 = __VA_ARGS__;                                                                                        \
    }                                                                                                            \
    out[0] = sum_f32(acc0);                                                                                      \
    out[stride] = sum_f32(acc1);                                                                                 \
  }

DEFINE_GEMV_SUPER_BLOCKS(gemv_q2_K, BYTES_Q2_K, super_block_q2_K(x, y, acc, &k))
DEFINE_GEMV_SUPER_BLOCKS(gemv_q3_K, BYTES_Q3_K, super_block_q3_K(x, y, acc))
DEFINE_GEMV_SUPER_BLOCKS(gemv_q4_K, BYTES_Q4_K, super_block_q45_K(x, y, acc, 0, &k))
DEFINE_GEMV_SUPER_BLOCKS(gemv_q5_K, BYTES_Q5_K, super_block_q45_K(x, y, acc, 1, &k))
DEFINE_GEMV_SUPER_BLOCKS(gemv_q6_K, BYTES_Q6_K, super_block_q6_K(x, y, acc, &k))
DEFINE_GEMV_SUPER_BLOCKS(gemv_iq4_xs, BYTES_IQ4_XS, super_block_iq4_xs(x, y, acc, &k))
