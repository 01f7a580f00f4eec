// Matrix × one to four columns for the k-quants: two rows at a time against columns of llama.cpp's q8_K. The rows share
// each load of the activations, the columns what is unpacked of the rows.
//
// Within a super-block everything is integer: byte dot products to i16, times the group's scale to i32 (one vpmaddwd
// does both the product and the pairwise sum), so that one conversion and one FMA per super-block, row and column
// remain. Registers: 4 of weights, 2 of activations, 2 of scales, and an i32 sum for each row and column.
#pragma once
#include "gemv-blocks.h"
#include "tensor.h"

// i16 number `j` of a vector in all lanes; j has to be a constant.
#define splat_i16(v, j)                                                                                          \
  wasm_i8x16_shuffle(v, v, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, \
                     2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1, 2 * (j), 2 * (j) + 1)

// Sums of each 32 activations as 8 × i16; a sum of 32 bytes fits.
INLINE vec sums_of_32(const uint8_t *y) {
  return wasm_i16x8_narrow_i32x4(pair_sums_i32(load(y + Q8_K_SUMS)), pair_sums_i32(load(y + Q8_K_SUMS + 16)));
}

// Scales of the groups of 16 (or in `low` of 32) and, where the format has them, minimums: as i16.
typedef struct {
  vec low, high;
  vec min_low, min_high;
} group_scales;

INLINE group_scales widen_scales(vec bytes, vec mins) {
  return (group_scales){wasm_i16x8_extend_low_i8x16(bytes), wasm_i16x8_extend_high_i8x16(bytes),
                        wasm_i16x8_extend_low_i8x16(mins), wasm_i16x8_extend_high_i8x16(mins)};
}

// How a format's super-block is put together, all constants.
typedef struct {
  int type;
  int bytes;
  int d_at;
  int min_at;   // 0: no minimums
  int offset_shift; // log2 of what is subtracted from each quant, 0: nothing
} super_format;

#define SUPER_Q2_K ((super_format){TYPE_Q2_K, BYTES_Q2_K, 80, 82, 0})
#define SUPER_Q3_K ((super_format){TYPE_Q3_K, BYTES_Q3_K, 108, 0, 2})
#define SUPER_Q4_K ((super_format){TYPE_Q4_K, BYTES_Q4_K, 0, 2, 0})
#define SUPER_Q5_K ((super_format){TYPE_Q5_K, BYTES_Q5_K, 0, 2, 0})
#define SUPER_Q6_K ((super_format){TYPE_Q6_K, BYTES_Q6_K, 208, 0, 5})
#define SUPER_IQ4_XS ((super_format){TYPE_IQ4_XS, BYTES_IQ4_XS, 0, 0, 0})

INLINE group_scales scales_of(const uint8_t *x, super_format format, const constants *k) {
  if (format.type == TYPE_Q6_K) return widen_scales(load(x + 192), ZERO_I32);
  if (format.type == TYPE_Q3_K) return widen_scales(scales_q3_K(x + 96), ZERO_I32);
  if (format.type == TYPE_Q2_K) return widen_scales(low_nibbles(load(x), k), high_nibbles(load(x), k));
  if (format.type == TYPE_IQ4_XS) return widen_scales(scales_iq4_xs(x), ZERO_I32);
  const packed_scales packed = scales_q4_K(x + 4);
  const vec both = wasm_i64x2_make((int64_t)packed.scales, (int64_t)packed.mins);
  return (group_scales){wasm_i16x8_extend_low_i8x16(both), ZERO_I32, wasm_i16x8_extend_high_i8x16(both), ZERO_I32};
}

INLINE bytes32 group_of(const uint8_t *x, int g, super_format format, const constants *k) {
  switch (format.type) {
  case TYPE_Q2_K: return group_q2_K(x, g);
  case TYPE_Q3_K: return group_q3_K(x, g);
  case TYPE_Q4_K: return group_q4_K(x + 16, g, k);
  case TYPE_Q5_K: return group_q5_K(x, g, k);
  case TYPE_Q6_K: return group_q6_K(x, g, k);
  default: return group_iq4_xs(x, g, k);
  }
}

// Σ of minimum × sum of the activations it stands for, or with `low` and `high` of scale × that sum.
INLINE vec weighted_sums(const uint8_t *y, vec low, vec high) {
  return wasm_i32x4_add(wasm_i32x4_dot_i16x8(load(y + Q8_K_SUMS), low),
                        wasm_i32x4_dot_i16x8(load(y + Q8_K_SUMS + 16), high));
}

#define FOR_EIGHT_GROUPS(BODY) BODY(0) BODY(1) BODY(2) BODY(3) BODY(4) BODY(5) BODY(6) BODY(7)
#define FOR_COLUMNS _Pragma("clang loop unroll(full)") for (int j = 0; j < n; j++)

// One scale for each 32: Q4_K and Q5_K.
#define GROUP_32(g)                                                                                              \
  {                                                                                                              \
    const bytes32 a = group_of(x, g, format, &k), b = group_of(x + row_bytes, g, format, &k);                    \
    const vec scale_a = splat_i16(sa.low, g), scale_b = splat_i16(sb.low, g);                                    \
    FOR_COLUMNS {                                                                                                \
      const uint8_t *yq = y.quants + (size_t)j * y.bytes + Q8_K_QUANTS + 32 * g;                                 \
      const vec low = load(yq), high = load(yq + 16);                                                            \
      const vec dots_a = wasm_i16x8_add(dot_i8_u7(low, a.low), dot_i8_u7(high, a.high));                         \
      const vec dots_b = wasm_i16x8_add(dot_i8_u7(low, b.low), dot_i8_u7(high, b.high));                         \
      sum_a[j] = wasm_i32x4_add(sum_a[j], wasm_i32x4_dot_i16x8(dots_a, scale_a));                                \
      sum_b[j] = wasm_i32x4_add(sum_b[j], wasm_i32x4_dot_i16x8(dots_b, scale_b));                                \
    }                                                                                                            \
  }

// One scale for each 16: Q2_K, Q3_K, Q6_K.
#define SCALE_16(s, i) ((i) < 8 ? splat_i16(s.low, (i) & 7) : splat_i16(s.high, (i) & 7))
#define GROUP_16(g)                                                                                              \
  {                                                                                                              \
    const bytes32 a = group_of(x, g, format, &k), b = group_of(x + row_bytes, g, format, &k);                    \
    const vec a0 = SCALE_16(sa, 2 * g), a1 = SCALE_16(sa, 2 * g + 1);                                            \
    const vec b0 = SCALE_16(sb, 2 * g), b1 = SCALE_16(sb, 2 * g + 1);                                            \
    FOR_COLUMNS {                                                                                                \
      const uint8_t *yq = y.quants + (size_t)j * y.bytes + Q8_K_QUANTS + 32 * g;                                 \
      const vec low = load(yq), high = load(yq + 16);                                                            \
      sum_a[j] = wasm_i32x4_add(sum_a[j], wasm_i32x4_add(wasm_i32x4_dot_i16x8(dot_i8_u7(low, a.low), a0),        \
                                                         wasm_i32x4_dot_i16x8(dot_i8_u7(high, a.high), a1)));    \
      sum_b[j] = wasm_i32x4_add(sum_b[j], wasm_i32x4_add(wasm_i32x4_dot_i16x8(dot_i8_u7(low, b.low), b0),        \
                                                         wasm_i32x4_dot_i16x8(dot_i8_u7(high, b.high), b1)));    \
    }                                                                                                            \
  }

// One scale for each 32, signed quants of eight bits: IQ4_XS. i32 dot products times the scale.
INLINE vec dots_of_bytes(bytes32 w, const uint8_t *y) {
  const vec low = load(y), high = load(y + 16);
#define HALF(half, part) wasm_i32x4_dot_i16x8(wasm_i16x8_extend_##half##_i8x16(w.part), wasm_i16x8_extend_##half##_i8x16(part))
  return wasm_i32x4_add(wasm_i32x4_add(HALF(low, low), HALF(high, low)), wasm_i32x4_add(HALF(low, high), HALF(high, high)));
#undef HALF
}
#define GROUP_SIGNED(g)                                                                                          \
  {                                                                                                              \
    const bytes32 a = group_of(x, g, format, &k), b = group_of(x + row_bytes, g, format, &k);                    \
    const vec scale_a = wasm_i32x4_extend_low_i16x8(splat_i16(sa.low, g));                                       \
    const vec scale_b = wasm_i32x4_extend_low_i16x8(splat_i16(sb.low, g));                                       \
    FOR_COLUMNS {                                                                                                \
      const uint8_t *yq = y.quants + (size_t)j * y.bytes + Q8_K_QUANTS + 32 * g;                                 \
      sum_a[j] = wasm_i32x4_add(sum_a[j], wasm_i32x4_mul(dots_of_bytes(a, yq), scale_a));                        \
      sum_b[j] = wasm_i32x4_add(sum_b[j], wasm_i32x4_mul(dots_of_bytes(b, yq), scale_b));                        \
    }                                                                                                            \
  }

INLINE void gemv_super_blocks(const uint8_t *x, size_t row_bytes, int64_t super_blocks, gemv_columns y, int n,
                              gemv_results out, constants k, super_format format) {
  const int by_32 = format.type == TYPE_Q4_K || format.type == TYPE_Q5_K;
  vec acc_a[MOST_GEMV_COLUMNS] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  vec acc_b[MOST_GEMV_COLUMNS] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t s = 0; s < super_blocks; s++, x += format.bytes, y.quants += Q8_K_BYTES) {
    const group_scales sa = scales_of(x, format, &k), sb = scales_of(x + row_bytes, format, &k);
    vec sum_a[MOST_GEMV_COLUMNS], sum_b[MOST_GEMV_COLUMNS];
    FOR_COLUMNS {
      sum_a[j] = sum_b[j] = ZERO_I32;
      if (!format.offset_shift) continue;
      const uint8_t *yb = y.quants + (size_t)j * y.bytes;
      sum_a[j] = wasm_i32x4_neg(wasm_i32x4_shl(weighted_sums(yb, sa.low, sa.high), format.offset_shift));
      sum_b[j] = wasm_i32x4_neg(wasm_i32x4_shl(weighted_sums(yb, sb.low, sb.high), format.offset_shift));
    }
    if (by_32) { FOR_EIGHT_GROUPS(GROUP_32) }
    else if (format.type == TYPE_IQ4_XS) { FOR_EIGHT_GROUPS(GROUP_SIGNED) }
    else { FOR_EIGHT_GROUPS(GROUP_16) }
    // d of both rows, then their scale of the minimums.
    const vec d = f16_of_pairs(x + format.d_at, x + (format.min_at ? format.min_at : format.d_at), row_bytes, &k);
    FOR_COLUMNS {
      const uint8_t *yb = y.quants + (size_t)j * y.bytes;
      const vec scale = wasm_f32x4_mul(d, load_splat_f32((const float *)yb));
      acc_a[j] = madd(to_f32(sum_a[j]), splat_lane(scale, 0), acc_a[j]);
      acc_b[j] = madd(to_f32(sum_b[j]), splat_lane(scale, 1), acc_b[j]);
      if (!format.min_at) continue;
      vec min_a, min_b;
      if (by_32) {
        const vec sums = sums_of_32(yb);
        min_a = wasm_i32x4_dot_i16x8(sums, sa.min_low), min_b = wasm_i32x4_dot_i16x8(sums, sb.min_low);
      } else {
        min_a = weighted_sums(yb, sa.min_low, sa.min_high), min_b = weighted_sums(yb, sb.min_low, sb.min_high);
      }
      acc_a[j] = nmadd(to_f32(min_a), splat_lane(scale, 2), acc_a[j]);
      acc_b[j] = nmadd(to_f32(min_b), splat_lane(scale, 3), acc_b[j]);
    }
  }
  for (int j = 0; j < n; j++) {
    float *to = result_of(out, j);
    to[0] = sum_f32(acc_a[j]), to[out.row_stride] = sum_f32(acc_b[j]);
  }
}

#define DEFINE_GEMV_SUPER_BLOCKS(name, format, n)                                                                \
  NOINLINE void name##_##n(const uint8_t *x, size_t row_bytes, int64_t super_blocks, gemv_columns y,             \
                           gemv_results out, constants k) {                                                      \
    gemv_super_blocks(x, row_bytes, super_blocks, y, n, out, k, format);                                         \
  }
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SUPER_BLOCKS, gemv_q2_K, SUPER_Q2_K)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SUPER_BLOCKS, gemv_q3_K, SUPER_Q3_K)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SUPER_BLOCKS, gemv_q4_K, SUPER_Q4_K)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SUPER_BLOCKS, gemv_q5_K, SUPER_Q5_K)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SUPER_BLOCKS, gemv_q6_K, SUPER_Q6_K)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SUPER_BLOCKS, gemv_iq4_xs, SUPER_IQ4_XS)
