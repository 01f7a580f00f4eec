// Repacked weights × one column, a tile of sixteen rows at a time.
//
// A step takes four weights of each row and, splat, four activations: 64 products in four vpmaddubsw. Sums stay in i16
// for a block of 32 (with the offset that they begin with Q4_0: 16·8·127, MXFP4: 16·12·127, Q5_K: 16·16·127; without one Q4_K:
// 16·15·127) or for 16 weights (Q6_K: 8·32·127). A branch that is never taken (IN_ORDER) stands behind each 16 weights: without,
// LLVM finishes one sum before it begins the next, and the splat activations are spilled. A loop would do as well, but V8 adds
// six instructions to each turn.
// Where the machine has a dot product of bytes (`dot`), it takes the place of vpmaddubsw and an addition, and sums are i32: the
// same numbers, since nothing is cut off on either way, so results are the same bits.
//
// Registers: 4 sums, 4 splat activations (8 of Q8_0, of which some are spilled), weights, a product, a mask: 12 of 16. The
// accumulators are spilled.
#pragma once
#include "repacked-activations.h"
#include "repacked-scales.h"

#define ROLLED _Pragma("clang loop unroll(disable)")
#define UNROLLED _Pragma("clang loop unroll(full)")
#define IN_ORDER(k) if (__builtin_expect((k)->never, 0)) __asm__ volatile("" ::: "memory")
#define EACH_QUARTET UNROLLED for (int q = 0; q < QUARTETS; q++)

// 16 weights of four bits.
INLINE void gemv_nibbles(vec *sums, const uint8_t *y, const uint8_t *x, int coded, const constants *k, int dot) {
  const vec quants = load(y);
#define WEIGHTS(half, packed) weights_of_nibbles(half##_nibbles(packed, k), coded, k)
  EACH_QUARTET {
    const vec first = load(x + 16 * q), second = load(x + 16 * q + TILE_STEP);
    sums[q] = add_products(sums[q], splat_lane(quants, 0), WEIGHTS(low, first), dot);
    sums[q] = add_products(sums[q], splat_lane(quants, 1), WEIGHTS(high, first), dot);
    sums[q] = add_products(sums[q], splat_lane(quants, 2), WEIGHTS(low, second), dot);
    sums[q] = add_products(sums[q], splat_lane(quants, 3), WEIGHTS(high, second), dot);
  }
#undef WEIGHTS
}

INLINE void gemv_32(vec *sums, const uint8_t *y, const uint8_t *x, int coded, const constants *k, int dot) {
  gemv_nibbles(sums, y, x, coded, k, dot);
  IN_ORDER(k);
  gemv_nibbles(sums, y + 16, x + 2 * TILE_STEP, coded, k, dot);
}

// Adds the sums of a block, times the halves of their rows, which stand at `x`, and the scale of the column.
INLINE void add_block(vec *acc, const vec *sums, const uint8_t *x, vec y_scale, const constants *k) {
  const vec halves[2] = {load(x), load(x + 16)};
  vec d[4];
  EACH_QUARTET d[q] = unscaled_halves(halves[q / 2], q % 2, k);
  if (any_subnormal(wasm_u16x8_min(exponents_of_halves(halves[0], k), exponents_of_halves(halves[1], k)))) {
    EACH_QUARTET d[q] = scaled_halves(d[q], k);
  } else {
    // One multiplication completes the conversion of all.
    y_scale = wasm_f32x4_mul(y_scale, k->f16_scale);
  }
  EACH_QUARTET acc[q] = madd(to_f32(sums[q]), wasm_f32x4_mul(d[q], y_scale), acc[q]);
}

// The same with MXFP4's powers of two.
INLINE void add_block_of_powers(vec *acc, const vec *sums, const uint8_t *x, vec y_scale, const constants *k) {
  const vec exponents = halved_exponents(x, k);
  EACH_QUARTET acc[q] = madd(to_f32(sums[q]), wasm_f32x4_mul(powers_of_quartet(exponents, q, k), y_scale), acc[q]);
}

// The product of a tile at `x` and one column, of any format. Of formats in blocks: Q4_0, MXFP4, and with `dot` IQ4_NL.
INLINE void gemv_blocks(int32_t type, const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k, int dot) {
  const int is_mxfp4 = type == TYPE_MXFP4;
  const vec factor = factor_of_offset(type, &k);
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t b = 0; b < blocks; b++, x += is_mxfp4 ? TILE_MXFP4 : TILE_Q4_0, y += RECORD_Q4_0) {
    const vec first = first_sums(wasm_v128_load32_splat(y + 36), dot, factor), y_scale = wasm_v128_load32_splat(y + 32);
    vec sums[4] = {first, first, first, first};
    gemv_32(sums, y, x + (is_mxfp4 ? TILE_EXPONENTS : TILE_HALVES), type != TYPE_Q4_0, &k, dot);
    EACH_QUARTET sums[q] = sums_as_i32(sums[q], dot, &k);
    if (is_mxfp4) add_block_of_powers(acc, sums, x, y_scale, &k);
    else add_block(acc, sums, x, y_scale, &k);
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

// `is_signed`: the dot product takes all bytes as signed, and weights lose what they were moved up by.
INLINE void gemv_dot_q8_0(const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k, int is_signed) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t b = 0; b < blocks; b++, x += TILE_Q8_0, y += RECORD_Q8_0_DOT) {
    const vec offset = is_signed ? ZERO_I32 : wasm_v128_load32_splat(y + 36);
    vec sums[4] = {offset, offset, offset, offset};
    const uint8_t *xq = x + TILE_HALVES;
    UNROLLED for (int half = 0; half < 2; half++) {
      const vec quants = load(y + 16 * half);
      UNROLLED for (int step = 0; step < 4; step++, xq += TILE_STEP) {
        const vec column = splat_number(quants, step);
        EACH_QUARTET sums[q] = add_dot(column, bytes_q8_0(xq + 16 * q, is_signed, &k), sums[q]);
        IN_ORDER(&k);
      }
    }
    add_block(acc, sums, x, wasm_v128_load32_splat(y + 32), &k);
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

// Even and odd weights of 16 bits: 32 products in eight vpmaddwd.
INLINE void gemv_words_q8_0(const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t b = 0; b < blocks; b++, x += TILE_Q8_0, y += RECORD_Q8_0) {
    const vec offset = wasm_v128_load32_splat(y + 68);
    vec sums[4] = {offset, offset, offset, offset};
    const uint8_t *xq = x + TILE_HALVES, *yq = y;
    UNROLLED for (int half = 0; half < 2; half++, xq += 4 * TILE_STEP, yq += 32) {
      IN_ORDER(&k);
      const vec even = load(yq), odd = load(yq + 16);
      EACH_QUARTET {
        UNROLLED for (int step = 0; step < 4; step++) {
          const vec w = load(xq + TILE_STEP * step + 16 * q);
          sums[q] = wasm_i32x4_add(sums[q], wasm_i32x4_dot_i16x8(wasm_v128_and(w, k.low_bytes), splat_number(even, step)));
          sums[q] = wasm_i32x4_add(sums[q], wasm_i32x4_dot_i16x8(wasm_u16x8_shr(w, 8), splat_number(odd, step)));
        }
      }
    }
    add_block(acc, sums, x, wasm_v128_load32_splat(y + 64), &k);
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

INLINE void gemv_q8_0(int32_t type, const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k, int dot) {
  (void)type;
  if (dot) gemv_dot_q8_0(x, blocks, y, out, k, dot == SIGNED_DOT);
  else gemv_words_q8_0(x, blocks, y, out, k);
}

// Of sixteen bytes, those of quartet q: each in 32 bits of its own, as two i16 or as an i32.
#define PICK(q, dot)                                                                                             \
  wasm_i8x16_const(4 * (q), -1, (dot) ? -1 : 4 * (q), -1, 4 * (q) + 1, -1, (dot) ? -1 : 4 * (q) + 1, -1,         \
                   4 * (q) + 2, -1, (dot) ? -1 : 4 * (q) + 2, -1, 4 * (q) + 3, -1, (dot) ? -1 : 4 * (q) + 3, -1)
#define PICKS(dot) {opaque(PICK(0, dot)), opaque(PICK(1, dot)), opaque(PICK(2, dot)), opaque(PICK(3, dot))}

// 32 weights of five bits.
INLINE void gemv_32_of_five_bits(vec *sums, const uint8_t *y, const uint8_t *x, const constants *k, int dot) {
  const vec quants = load(y), last_quants = load(y + 16);
  vec shared[4];
  EACH_QUARTET {
    const vec first = load(x + 16 * q), second = load(x + 16 * q + TILE_STEP), third = load(x + 16 * q + 2 * TILE_STEP);
    shared[q] = shared_bits(first, second, k);
    sums[q] = add_products(sums[q], splat_lane(quants, 0), five_bits(first, k), dot);
    sums[q] = add_products(sums[q], splat_lane(quants, 1), five_bits(second, k), dot);
    sums[q] = add_products(sums[q], splat_lane(quants, 2), five_bits(third, k), dot);
    sums[q] = add_products(sums[q], splat_lane(quants, 3), five_bits_above(0, third, shared[q], k), dot);
  }
  IN_ORDER(k);
  EACH_QUARTET {
    const vec first = load(x + 16 * q + 3 * TILE_STEP), second = load(x + 16 * q + 4 * TILE_STEP);
    sums[q] = add_products(sums[q], splat_lane(last_quants, 0), five_bits(first, k), dot);
    sums[q] = add_products(sums[q], splat_lane(last_quants, 1), five_bits_above(1, first, shared[q], k), dot);
    sums[q] = add_products(sums[q], splat_lane(last_quants, 2), five_bits(second, k), dot);
    sums[q] = add_products(sums[q], splat_lane(last_quants, 3), five_bits_above(2, second, shared[q], k), dot);
  }
}

// Q4_K and Q5_K.
INLINE void gemv_with_minimums(int32_t type, const uint8_t *x, int64_t super_blocks, const uint8_t *y, float *out, constants k,
                               int dot) {
  const size_t group = group_with_minimums(type);
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  vec pick[4] = PICKS(0);
  if (dot) {
    const vec words[4] = PICKS(1);
    EACH_QUARTET pick[q] = words[q];
  }
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * group, y += RECORD_K) {
    vec totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32}, minimums[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    const uint8_t *yq = y, *xq = x, *of_groups = y + SUPER_BLOCK + 4;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 32, xq += group, of_groups += 4) {
      // What sums of five bits begin with fits an i16 with them; without `dot` it has to be taken off again.
      const int has_offset = type == TYPE_Q5_K && !dot;
      const vec offset = has_offset ? wasm_v128_load32_splat(of_groups + sums_of_record(1)) : ZERO_I16;
      vec sums[4] = {offset, offset, offset, offset};
      if (type == TYPE_Q4_K) gemv_32(sums, yq, xq + QUANTS_Q4_K, 0, &k, dot);
      else gemv_32_of_five_bits(sums, yq, xq + QUANTS_Q4_K, &k, dot);
      IN_ORDER(&k);
      const row_scales of = scales_of_group(xq, 0, 4, &k);
      const vec sum = wasm_v128_load32_splat(of_groups);
      EACH_QUARTET {
        const vec scale = wasm_i8x16_relaxed_swizzle(of.scales, pick[q]);
        totals[q] = add_scaled_sums(totals[q], sums[q], scale, dot);
        if (has_offset) totals[q] = wasm_i32x4_sub(totals[q], wasm_i32x4_dot_i16x8(offset, scale));
        minimums[q] = wasm_i32x4_add(minimums[q], wasm_i32x4_dot_i16x8(sum, wasm_i8x16_relaxed_swizzle(of.mins, pick[q])));
      }
    }
    const vec y_scale = wasm_v128_load32_splat(y + SUPER_BLOCK);
    EACH_QUARTET {
      acc[q] = nmadd(to_f32(minimums[q]), wasm_f32x4_mul(quartet_q4_K(x, group, 1, q, &k), y_scale), acc[q]);
      acc[q] = madd(to_f32(totals[q]), wasm_f32x4_mul(quartet_q4_K(x, group, 0, q, &k), y_scale), acc[q]);
    }
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

INLINE void gemv_q6_K(int32_t type, const uint8_t *x, int64_t super_blocks, const uint8_t *y, float *out, constants k, int dot) {
  (void)type;
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t s = 0; s < super_blocks; s++, x += BYTES_Q6_K * TILE_ROWS, y += RECORD_K) {
    vec totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    const uint8_t *yq = y, *offsets = y + SUPER_BLOCK + 4, *xq = x + QUANTS_Q6_K, *words = x + SCALES_Q6_K;
    ROLLED for (int word = 0; word < 4; word++, words += TILE_STEP) {
      vec scales[4];
      EACH_QUARTET scales[q] = load(words + 16 * q);
      ROLLED for (int i = 0; i < 4; i++, yq += 16, offsets += 4, xq += TILE_Q6_16) {
        const vec quants = load(yq), first = first_sums(wasm_v128_load32_splat(offsets), dot, k.ones);
        EACH_QUARTET {
          vec sums = first, fourth = ZERO_I32;
          UNROLLED for (int step = 0; step < 3; step++) {
            const vec packed = load(xq + TILE_STEP * step + 16 * q), w = wasm_v128_and(packed, k.six_bits);
            fourth = add_to_fourth(step, fourth, wasm_v128_xor(packed, w));
            sums = add_products(sums, splat_number(quants, step), w, dot);
          }
          sums = add_products(sums, splat_number(quants, 3), wasm_u16x8_shr(fourth, 2), dot);
          totals[q] = add_scaled_sums(totals[q], sums, signed_scale(scales[q], dot, &k), dot);
          scales[q] = wasm_u32x4_shr(scales[q], 8);
        }
      }
    }
    const vec y_scale = wasm_v128_load32_splat(y + SUPER_BLOCK);
    EACH_QUARTET acc[q] = madd(to_f32(totals[q]), wasm_f32x4_mul(quartet_of_halves(x, q, &k), y_scale), acc[q]);
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}
