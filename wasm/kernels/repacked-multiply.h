// Repacked weights × two to four columns: half a tile at a time, with sums as in repacked-gemv.h. A step takes four weights
// of each row (two vectors) and four activations of each column (one, splat four times): 128 products in 8 vpmaddubsw.
//
// Registers: 8 sums, 2 of packed weights, 2 of unpacked ones, activations, splat, product: 15 of 16, and the mask is spilled
// like the accumulators.
#pragma once
#include "eight-rows.h"

// Q4_0, MXFP4, and with `dot` IQ4_NL. Rows 8 × part to 8 × part + 7 of the tile at `x`, here and below.
INLINE void multiply_blocks(int32_t type, const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, repacked_results out,
                            constants k, int dot) {
  const int is_mxfp4 = type == TYPE_MXFP4;
  const vec factor = factor_of_offset(type, &k);
  eight_rows acc = zero_rows();
  for (int64_t b = 0; b < blocks; b++, x += is_mxfp4 ? TILE_MXFP4 : TILE_Q4_0, y += RECORD_Q4_0 * 4) {
    const eight_halves of_rows = is_mxfp4 ? powers_of_blocks(x, part, &k) : halves_of_blocks(load(x + 16 * part), &k);
    eight_rows sums;
    begin_sums(&sums, n, first_sums(load(y + 144), dot, factor));
    add_32(&sums, n, y, x + (is_mxfp4 ? TILE_EXPONENTS : TILE_HALVES) + 32 * part, type != TYPE_Q4_0, &k, dot);
    EACH_COLUMN EACH_HALF sums.half[h][j] = sums_as_i32(sums.half[h][j], dot, &k);
    add_floats(&acc, n, &sums, of_rows.d, load(y + 128));
  }
  store_rows(&acc, n, out);
}

INLINE void multiply_dot_q8_0(const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, repacked_results out,
                              constants k, int is_signed) {
  eight_rows acc = zero_rows();
  for (int64_t b = 0; b < blocks; b++, x += TILE_Q8_0, y += RECORD_Q8_0_DOT * 4) {
    const eight_halves of_rows = halves_of_blocks(load(x + 16 * part), &k);
    eight_rows sums;
    begin_sums(&sums, n, is_signed ? ZERO_I32 : load(y + 144));
    const uint8_t *xq = x + TILE_HALVES + 32 * part;
    UNROLLED for (int step = 0; step < 8; step++, xq += TILE_STEP) {
      add_step(&sums, n, load(y + 16 * step), bytes_q8_0(xq, is_signed, &k), bytes_q8_0(xq + 16, is_signed, &k), 1);
      IN_ORDER(&k);
    }
    add_floats(&acc, n, &sums, of_rows.d, load(y + 128));
  }
  store_rows(&acc, n, out);
}

INLINE void multiply_words_q8_0(const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, repacked_results out,
                                constants k) {
  eight_rows acc = zero_rows();
  for (int64_t b = 0; b < blocks; b++, x += TILE_Q8_0, y += RECORD_Q8_0 * 4) {
    const eight_halves of_rows = halves_of_blocks(load(x + 16 * part), &k);
    eight_rows sums;
    begin_sums(&sums, n, load(y + 272));
    const uint8_t *xq = x + TILE_HALVES + 32 * part, *yq = y;
    UNROLLED for (int half = 0; half < 2; half++, yq += 64) {
      UNROLLED for (int step = 0; step < 4; step++, xq += TILE_STEP, yq += 16) {
        const vec w[2] = {load(xq), load(xq + 16)}, even = load(yq), odd = load(yq + 64);
        const vec w_even[2] = {wasm_v128_and(w[0], k.low_bytes), wasm_v128_and(w[1], k.low_bytes)};
        EACH_COLUMN {
          const vec column = splat_number(even, j);
          EACH_HALF sums.half[h][j] = wasm_i32x4_add(sums.half[h][j], wasm_i32x4_dot_i16x8(column, w_even[h]));
        }
        IN_ORDER(&k);
        const vec w_odd[2] = {wasm_u16x8_shr(w[0], 8), wasm_u16x8_shr(w[1], 8)};
        EACH_COLUMN {
          const vec column = splat_number(odd, j);
          EACH_HALF sums.half[h][j] = wasm_i32x4_add(sums.half[h][j], wasm_i32x4_dot_i16x8(column, w_odd[h]));
        }
        IN_ORDER(&k);
      }
    }
    add_floats(&acc, n, &sums, of_rows.d, load(y + 256));
  }
  store_rows(&acc, n, out);
}

INLINE void multiply_q8_0(int32_t type, const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, repacked_results out,
                          constants k, int dot) {
  (void)type;
  if (dot) multiply_dot_q8_0(x, part, blocks, y, n, out, k, dot == SIGNED_DOT);
  else multiply_words_q8_0(x, part, blocks, y, n, out, k);
}

// 32 weights of five bits.
INLINE void add_32_of_five_bits(eight_rows *sums, int n, const uint8_t *y, const uint8_t *x, const constants *k, int dot) {
  const vec a[2] = {load(x), load(x + 16)}, b[2] = {load(x + TILE_STEP), load(x + TILE_STEP + 16)};
  const vec shared[2] = {shared_bits(a[0], b[0], k), shared_bits(a[1], b[1], k)};
  add_step(sums, n, load(y), five_bits(a[0], k), five_bits(a[1], k), dot);
  IN_ORDER(k);
  add_step(sums, n, load(y + 16), five_bits(b[0], k), five_bits(b[1], k), dot);
  IN_ORDER(k);
  UNROLLED for (int pair = 0; pair < 3; pair++) {
    const uint8_t *at = x + TILE_STEP * (2 + pair), *yq = y + 32 + 32 * pair;
    const vec w[2] = {load(at), load(at + 16)};
    add_step(sums, n, load(yq), five_bits(w[0], k), five_bits(w[1], k), dot);
    IN_ORDER(k);
    add_step(sums, n, load(yq + 16), five_bits_above(pair, w[0], shared[0], k), five_bits_above(pair, w[1], shared[1], k), dot);
    IN_ORDER(k);
  }
}

// Q4_K and Q5_K.
INLINE void multiply_with_minimums(int32_t type, const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n,
                                   repacked_results out, constants k, int dot) {
  const size_t group = group_with_minimums(type);
  eight_rows acc = zero_rows();
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * group, y += RECORD_K * 4) {
    scales_of_rows of[2];
    read_scales_q4_K(of, x, group, part, &k);
    const uint8_t *behind = y + SUPER_BLOCK * 4;
    const vec of_columns = load(behind);
    const int has_offset = type == TYPE_Q5_K && !dot;
    eight_rows minimums, totals = zero_rows();
    EACH_COLUMN {
      const vec of_column = load(behind + 16 + 16 * j);
      EACH_HALF minimums.half[h][j] = weighted_by_groups(of[h].mins, of_column, &k);
      if (has_offset) EACH_HALF totals.half[h][j] = wasm_i32x4_shl(weighted_by_groups(of[h].scales, of_column, &k), 4);
    }
    const vec dmin[2] = {quartet_q4_K(x, group, 1, 2 * part, &k), quartet_q4_K(x, group, 1, 2 * part + 1, &k)};
    add_floats(&acc, n, &minimums, dmin, wasm_f32x4_neg(of_columns));
    const uint8_t *yq = y, *xq = x + QUANTS_Q4_K + 32 * part, *offsets = behind + 16 + sums_of_record(4);
    ROLLED for (int g = 0; g < GROUPS; g += 4) {
      vec scales[2];
      EACH_HALF scales[h] = of[h].scales[g / 4];
      ROLLED for (int i = 0; i < 4; i++, xq += group, yq += 128, offsets += 16) {
        eight_rows sums = zero_rows();
        if (has_offset) begin_sums(&sums, n, load(offsets));
        if (type == TYPE_Q4_K) add_32(&sums, n, yq, xq, 0, &k, dot);
        else add_32_of_five_bits(&sums, n, yq, xq, &k, dot);
        const vec scale[2] = {unsigned_scale(scales[0], dot, &k), unsigned_scale(scales[1], dot, &k)};
        add_scaled(&totals, n, &sums, scale, dot);
        EACH_HALF scales[h] = wasm_u32x4_shr(scales[h], 8);
      }
    }
    const vec d[2] = {quartet_q4_K(x, group, 0, 2 * part, &k), quartet_q4_K(x, group, 0, 2 * part + 1, &k)};
    add_floats(&acc, n, &totals, d, of_columns);
  }
  store_rows(&acc, n, out);
}

// 16 weights of six bits: three steps as they lie, and a fourth of what is left of their bytes.
INLINE void add_16(eight_rows *sums, int n, const uint8_t *y, const uint8_t *x, const constants *k, int dot) {
  vec fourth[2];
  UNROLLED for (int step = 0; step < 3; step++, x += TILE_STEP) {
    vec w[2];
    EACH_HALF {
      const vec packed = load(x + 16 * h);
      w[h] = wasm_v128_and(packed, k->six_bits);
      fourth[h] = add_to_fourth(step, fourth[h], wasm_v128_xor(packed, w[h]));
    }
    add_step(sums, n, load(y + 16 * step), w[0], w[1], dot);
    IN_ORDER(k);
  }
  add_step(sums, n, load(y + 48), wasm_u16x8_shr(fourth[0], 2), wasm_u16x8_shr(fourth[1], 2), dot);
}

INLINE void multiply_q6_K(int32_t type, const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n,
                          repacked_results out, constants k, int dot) {
  (void)type;
  eight_rows acc = zero_rows();
  for (int64_t s = 0; s < super_blocks; s++, x += BYTES_Q6_K * TILE_ROWS, y += RECORD_K * 4) {
    const uint8_t *xq = x + QUANTS_Q6_K + 32 * part, *yq = y, *behind = y + SUPER_BLOCK * 4, *offsets = behind + 16;
    const uint8_t *words = x + SCALES_Q6_K + 32 * part;
    eight_rows totals = zero_rows();
    ROLLED for (int word = 0; word < 4; word++, words += TILE_STEP) {
      vec scales[2] = {load(words), load(words + 16)};
      ROLLED for (int i = 0; i < 4; i++, xq += TILE_Q6_16, yq += 64, offsets += 16) {
        eight_rows sums;
        begin_sums(&sums, n, first_sums(load(offsets), dot, k.ones));
        add_16(&sums, n, yq, xq, &k, dot);
        const vec scale[2] = {signed_scale(scales[0], dot, &k), signed_scale(scales[1], dot, &k)};
        add_scaled(&totals, n, &sums, scale, dot);
        EACH_HALF scales[h] = wasm_u32x4_shr(scales[h], 8);
      }
    }
    const vec d[2] = {quartet_of_halves(x, 2 * part, &k), quartet_of_halves(x, 2 * part + 1, &k)};
    add_floats(&acc, n, &totals, d, load(behind));
  }
  store_rows(&acc, n, out);
}
