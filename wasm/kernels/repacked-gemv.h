// Repacked weights × one column: sixteen rows at a time, in two groups of eight whose streams run side by side.
//
// A step takes four weights of each row and, splat, four activations: 64 products in four vpmaddubsw. Sums stay in i16
// for a block of 32 (Q4_0: with the offset that they begin with, 16·8·127; Q4_K: 16·15·127) or for 16 weights (Q6_K:
// 8·32·127). The loops over 16 weights stay rolled: in a longer piece LLVM finishes one sum before it begins the next,
// and the splat activations are spilled.
#pragma once
#include "repacked-activations.h"
#include "repacked-panel.h"

#define ROLLED _Pragma("clang loop unroll(disable)")
// Vectors of four rows, of which there are two for each group of eight rows.
#define EACH_QUARTET _Pragma("clang loop unroll(full)") for (int q = 0; q < 2 * n; q++)
#define EACH_STEP _Pragma("clang loop unroll(full)") for (int step = 0; step < 4; step++)
#define OF_QUARTET(x, other, q) ((q) < 2 ? (x) + 16 * (q) : (other) + 16 * ((q) - 2))

// 16 weights of four bits; the other group of rows stands `apart` bytes further.
INLINE void gemv_nibbles(vec *sums, int n, const uint8_t *y, const uint8_t *x, const uint8_t *other, const constants *k) {
  const vec quants = load(y);
  EACH_QUARTET {
    const vec first = load(OF_QUARTET(x, other, q)), second = load(OF_QUARTET(x, other, q) + 32);
    sums[q] = wasm_i16x8_add(sums[q], dot_i8_u7(splat_lane(quants, 0), low_nibbles(first, k)));
    sums[q] = wasm_i16x8_add(sums[q], dot_i8_u7(splat_lane(quants, 1), high_nibbles(first, k)));
    sums[q] = wasm_i16x8_add(sums[q], dot_i8_u7(splat_lane(quants, 2), low_nibbles(second, k)));
    sums[q] = wasm_i16x8_add(sums[q], dot_i8_u7(splat_lane(quants, 3), high_nibbles(second, k)));
  }
}

INLINE void gemv_32(vec *sums, int n, const uint8_t *y, const uint8_t *x, const uint8_t *other, const constants *k) {
  ROLLED for (int part = 0; part < 2; part++, y += 16, x += 64, other += 64) gemv_nibbles(sums, n, y, x, other, k);
}

INLINE vec halves_of_quartet(const uint8_t *x, const uint8_t *other, int q, const constants *k) {
  const vec halves = load((q) < 2 ? x : other);
  return halves_to_floats(q % 2 ? wasm_i32x4_extend_high_i16x8(halves) : wasm_i32x4_extend_low_i16x8(halves), k);
}

INLINE void gemv_repacked_q4_0(const uint8_t *x, int64_t blocks, const uint8_t *y, int n, float *out, constants k) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const uint8_t *other = x + blocks * (16 + REPACKED_Q4);
  for (int64_t b = 0; b < blocks; b++, x += 16 + REPACKED_Q4, other += 16 + REPACKED_Q4, y += RECORD_Q4_0) {
    const vec offset = wasm_v128_load32_splat(y + 36);
    vec sums[4] = {offset, offset, offset, offset};
    gemv_32(sums, n, y, x + 16, other + 16, &k);
    const vec scale = wasm_v128_load32_splat(y + 32);
    EACH_QUARTET {
      const vec halves = load(q < 2 ? x : other);
      const vec bits = f16_bits_to_f32(q % 2 ? wasm_i32x4_extend_high_i16x8(halves) : wasm_i32x4_extend_low_i16x8(halves), k.f16_bits);
      acc[q] = madd(to_f32(pair_sums_i32(sums[q])), wasm_f32x4_mul(wasm_f32x4_mul(bits, k.f16_scale), scale), acc[q]);
    }
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

INLINE void gemv_repacked_q4_K(const uint8_t *x, int64_t super_blocks, const uint8_t *y, int n, float *out, constants k) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const uint8_t *other = x + super_blocks * BYTES_Q4_K * REPACKED_ROWS;
  for (int64_t s = 0; s < super_blocks; s++, y += RECORD_K) {
    const scales_of_rows of[2] = {read_scales_q4_K(x, &k), read_scales_q4_K(n > 1 ? other : x, &k)};
    vec scale[GROUPS][4], totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    _Pragma("clang loop unroll(full)") for (int g = 0; g < GROUPS; g++) {
      EACH_QUARTET scale[g][q] = wasm_i8x16_relaxed_swizzle(of[q / 2].scales[g / 4][q % 2], twice_byte(g % 4));
    }
    const uint8_t *yq = y, *xq = x + QUANTS_Q4_K, *oq = other + QUANTS_Q4_K;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 32, xq += REPACKED_Q4, oq += REPACKED_Q4) {
      vec sums[4] = {ZERO_I16, ZERO_I16, ZERO_I16, ZERO_I16};
      gemv_32(sums, n, yq, xq, oq, &k);
      EACH_QUARTET totals[q] = wasm_i32x4_add(totals[q], wasm_i32x4_dot_i16x8(sums[q], scale[g][q]));
    }
    const vec y_scale = wasm_v128_load32_splat(y + SUPER_BLOCK), of_groups = load(y + SUPER_BLOCK + 4);
    EACH_QUARTET {
      acc[q] = madd(to_f32(totals[q]), wasm_f32x4_mul(halves_of_quartet(x, other, q, &k), y_scale), acc[q]);
      const vec minimums = minimums_q4_K(&of[q / 2], q % 2, of_groups);
      acc[q] = nmadd(to_f32(minimums), wasm_f32x4_mul(halves_of_quartet(x + 16, other + 16, q, &k), y_scale), acc[q]);
    }
    x += BYTES_Q4_K * REPACKED_ROWS, other += BYTES_Q4_K * REPACKED_ROWS;
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

INLINE void gemv_repacked_q6_K(const uint8_t *x, int64_t super_blocks, const uint8_t *y, int n, float *out, constants k) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const uint8_t *other = x + super_blocks * BYTES_Q6_K * REPACKED_ROWS;
  for (int64_t s = 0; s < super_blocks; s++, y += RECORD_K) {
    vec scale[16][4], totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    _Pragma("clang loop unroll(full)") for (int i = 0; i < 16; i++) {
      EACH_QUARTET {
        const vec words = load(OF_QUARTET(x, other, q) + SCALES_Q6_K + 32 * (i / 4));
        scale[i][q] = wasm_i16x8_shr(wasm_i8x16_relaxed_swizzle(words, twice_byte_high(i % 4)), 8);
      }
    }
    const uint8_t *yq = y, *offsets = y + SUPER_BLOCK + 4, *xq = x + QUANTS_Q6_K, *oq = other + QUANTS_Q6_K;
    ROLLED for (int i = 0; i < 16; i++, yq += 16, offsets += 4, xq += REPACKED_Q6_16, oq += REPACKED_Q6_16) {
      const vec quants = load(yq), offset = wasm_v128_load32_splat(offsets);
      EACH_QUARTET {
        const uint8_t *at = OF_QUARTET(xq, oq, q);
        const vec packed[2] = {load(at), load(at + 32)}, bits = load(at + 64);
        vec sums = offset;
        EACH_STEP {
          const vec low = step % 2 ? high_nibbles(packed[step / 2], &k) : low_nibbles(packed[step / 2], &k);
          sums = wasm_i16x8_add(sums, dot_i8_u7(splat_number(quants, step), wasm_v128_or(low, high_bits_of_step(bits, step, &k))));
        }
        totals[q] = wasm_i32x4_add(totals[q], wasm_i32x4_dot_i16x8(sums, scale[i][q]));
      }
    }
    const vec y_scale = wasm_v128_load32_splat(y + SUPER_BLOCK);
    EACH_QUARTET acc[q] = madd(to_f32(totals[q]), wasm_f32x4_mul(halves_of_quartet(x, other, q, &k), y_scale), acc[q]);
    x += BYTES_Q6_K * REPACKED_ROWS, other += BYTES_Q6_K * REPACKED_ROWS;
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

#define DEFINE_REPACKED_GEMV(name, n)                                                                            \
  NOINLINE void name##_##n(const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k) {        \
    name(x, blocks, y, n, out, k);                                                                               \
  }
#define DEFINE_REPACKED_GEMVS(name) DEFINE_REPACKED_GEMV(name, 1) DEFINE_REPACKED_GEMV(name, 2)
DEFINE_REPACKED_GEMVS(gemv_repacked_q4_0)
DEFINE_REPACKED_GEMVS(gemv_repacked_q4_K)
DEFINE_REPACKED_GEMVS(gemv_repacked_q6_K)

// `rows` rows (a multiple of eight) of repacked weights, `row_bytes` each.
NOINLINE void gemv_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                            float *out, constants c) {
  const int64_t blocks = k / weights_of_block(type);
#define CASE(TYPE, name)                                                                                         \
  case TYPE:                                                                                                     \
    if (left > REPACKED_ROWS) name##_2(x, blocks, record, out, c);                                               \
    else name##_1(x, blocks, record, out, c);                                                                    \
    break;
  for (int64_t left = rows; left > 0; left -= 2 * REPACKED_ROWS, x += 2 * REPACKED_ROWS * row_bytes, out += 2 * REPACKED_ROWS) {
    switch (type) {
      CASE(TYPE_Q4_0, gemv_repacked_q4_0)
      CASE(TYPE_Q4_K, gemv_repacked_q4_K)
      CASE(TYPE_Q6_K, gemv_repacked_q6_K)
    }
  }
#undef CASE
}
