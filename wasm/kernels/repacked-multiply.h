// Repacked weights × two to four columns, with sums as in repacked-gemv.h. A step takes four weights of each row and four
// activations of each column (one vector, splat for each): with three or four columns half of a tile, 96 or 128 products in 6 or
// 8 vpmaddubsw, and with two columns a whole one.
//
// Registers: 8 sums, 2 of packed weights, 2 of unpacked ones, activations, splat, product: 15 of 16, and the mask is spilled
// like the accumulators.
#pragma once
#include "tile-columns.h"

// Q4_0, MXFP4, and with `dot` IQ4_NL. Adds the products of the tile's blocks at `x`, here and below: `part` says of which half.
INLINE void multiply_blocks(int32_t type, const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, tile_sums *acc,
                            const constants *k, int dot) {
  const int is_mxfp4 = type == TYPE_MXFP4, many = AT_ONCE(type, n);
  const vec factor = factor_of_offset(type, k);
  ROLLED for (int64_t b = 0; b < blocks; b++, x += is_mxfp4 ? TILE_MXFP4 : TILE_Q4_0, y += RECORD_Q4_0 * 4) {
    const block_scales of = is_mxfp4 ? powers_of_block(x, part, many, k) : halves_of_block(x, part, many, k);
    tile_sums sums;
    begin_sums(&sums, many, n, first_sums(load(y + 144), dot, factor));
    add_32(&sums, many, n, y, x + (is_mxfp4 ? TILE_EXPONENTS : TILE_HALVES) + 32 * part, type != TYPE_Q4_0, k, dot);
    EACH_COLUMN EACH_OF(many) sums.of[q][j] = sums_as_i32(sums.of[q][j], dot, k);
    EACH_OF(many) add_floats(acc->of[q], n, sums.of[q], of.d[q], load(y + 128));
  }
}

INLINE void multiply_dot_q8_0(const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, tile_sums *acc,
                              const constants *k, int is_signed) {
  const int many = AT_ONCE(TYPE_Q8_0, n);
  ROLLED for (int64_t b = 0; b < blocks; b++, x += TILE_Q8_0, y += RECORD_Q8_0_DOT * 4) {
    const block_scales of = halves_of_block(x, part, many, k);
    tile_sums sums;
    begin_sums(&sums, many, n, is_signed ? ZERO_I32 : load(y + 144));
    const uint8_t *xq = x + TILE_HALVES + 32 * part;
    UNROLLED for (int step = 0; step < 8; step++, xq += TILE_STEP) {
      vec w[4];
      EACH_OF(many) w[q] = bytes_q8_0(xq + 16 * q, is_signed, k);
      add_step(&sums, many, n, load(y + 16 * step), w, 1);
      IN_ORDER(k);
    }
    EACH_OF(many) add_floats(acc->of[q], n, sums.of[q], of.d[q], load(y + 128));
  }
}

// One step of weights of 16 bits.
INLINE void add_step_of_words(tile_sums *sums, int many, int n, vec y, const vec *w) {
  EACH_COLUMN {
    const vec column = splat_number(y, j);
    EACH_OF(many) sums->of[q][j] = wasm_i32x4_add(sums->of[q][j], wasm_i32x4_dot_i16x8(column, w[q]));
  }
}

INLINE void multiply_words_q8_0(const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, tile_sums *acc,
                                const constants *k) {
  const int many = AT_ONCE(TYPE_Q8_0, n);
  ROLLED for (int64_t b = 0; b < blocks; b++, x += TILE_Q8_0, y += RECORD_Q8_0 * 4) {
    const block_scales of = halves_of_block(x, part, many, k);
    tile_sums sums;
    begin_sums(&sums, many, n, load(y + 272));
    const uint8_t *xq = x + TILE_HALVES + 32 * part, *yq = y;
    UNROLLED for (int half = 0; half < 2; half++, yq += 64) {
      UNROLLED for (int step = 0; step < 4; step++, xq += TILE_STEP, yq += 16) {
        vec packed[4], w[4];
        EACH_OF(many) packed[q] = load(xq + 16 * q);
        EACH_OF(many) w[q] = wasm_v128_and(packed[q], k->low_bytes);
        add_step_of_words(&sums, many, n, load(yq), w);
        IN_ORDER(k);
        EACH_OF(many) w[q] = wasm_u16x8_shr(packed[q], 8);
        add_step_of_words(&sums, many, n, load(yq + 64), w);
        IN_ORDER(k);
      }
    }
    EACH_OF(many) add_floats(acc->of[q], n, sums.of[q], of.d[q], load(y + 256));
  }
}

INLINE void multiply_q8_0(int32_t type, const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, tile_sums *acc,
                          const constants *k, int dot) {
  (void)type;
  if (dot) multiply_dot_q8_0(x, part, blocks, y, n, acc, k, dot == SIGNED_DOT);
  else multiply_words_q8_0(x, part, blocks, y, n, acc, k);
}

// 32 weights of five bits.
INLINE void add_32_of_five_bits(tile_sums *sums, int many, int n, const uint8_t *y, const uint8_t *x, const constants *k, int dot) {
  vec packed[4], shared[4], w[4];
  EACH_OF(many) packed[q] = load(x + 16 * q);
  EACH_OF(many) w[q] = load(x + TILE_STEP + 16 * q);
  EACH_OF(many) shared[q] = shared_bits(packed[q], w[q], k);
  EACH_OF(many) packed[q] = five_bits(packed[q], k);
  add_step(sums, many, n, load(y), packed, dot);
  IN_ORDER(k);
  EACH_OF(many) w[q] = five_bits(w[q], k);
  add_step(sums, many, n, load(y + 16), w, dot);
  IN_ORDER(k);
  UNROLLED for (int pair = 0; pair < 3; pair++) {
    const uint8_t *at = x + TILE_STEP * (2 + pair), *yq = y + 32 + 32 * pair;
    EACH_OF(many) packed[q] = load(at + 16 * q);
    EACH_OF(many) w[q] = five_bits(packed[q], k);
    add_step(sums, many, n, load(yq), w, dot);
    IN_ORDER(k);
    EACH_OF(many) w[q] = five_bits_above(pair, packed[q], shared[q], k);
    add_step(sums, many, n, load(yq + 16), w, dot);
    IN_ORDER(k);
  }
}

// Of two groups, the minimums of each quartet's rows as pairs of i16.
INLINE void pairs_of_minimums(vec pairs[QUARTETS], int many, vec a, vec b) {
  const vec low = wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  pairs[0] = wasm_u16x8_extend_low_u8x16(low), pairs[1] = wasm_u16x8_extend_high_u8x16(low);
  if (many == 2) return;
  const vec high = wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  pairs[2] = wasm_u16x8_extend_low_u8x16(high), pairs[3] = wasm_u16x8_extend_high_u8x16(high);
}

// Q4_K and Q5_K.
INLINE void multiply_with_minimums(int32_t type, const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n,
                                   tile_sums *acc, const constants *k, int dot) {
  const size_t group = group_with_minimums(type);
  const int has_offset = type == TYPE_Q5_K && !dot, many = AT_ONCE(type, n);
  vec pick[4] = PICKS(0);
  if (dot) {
    const vec words[4] = PICKS(1);
    EACH_QUARTET pick[q] = words[q];
  }
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * group, y += RECORD_K * 4) {
    tile_sums totals = zero_tile(), minimums = zero_tile();
    const uint8_t *behind = y + SUPER_BLOCK * 4, *of_groups = behind + 16, *offsets = of_groups + sums_of_record(4);
    const uint8_t *yq = y, *xq = x;
    ROLLED for (int pair = 0; pair < GROUPS / 2; pair++, of_groups += 4) {
      vec pairs[QUARTETS], first_mins = ZERO_I32;
      ROLLED for (int g = 0; g < 2; g++, xq += group, yq += 128, offsets += 16) {
        tile_sums sums = zero_tile();
        if (has_offset) begin_sums(&sums, many, n, load(offsets));
        const uint8_t *quants = xq + QUANTS_Q4_K + 32 * part;
        if (type == TYPE_Q4_K) add_32(&sums, many, n, yq, quants, 0, k, dot);
        else add_32_of_five_bits(&sums, many, n, yq, quants, k, dot);
        const row_scales of = scales_of_group(xq, part, many, k);
        EACH_OF(many) {
          const vec scale = wasm_i8x16_relaxed_swizzle(of.scales, pick[q]);
          add_scaled(totals.of[q], n, sums.of[q], scale, dot);
          if (has_offset) EACH_COLUMN {
            const vec again = wasm_i32x4_dot_i16x8(wasm_v128_load32_splat(offsets + 4 * j), scale);
            totals.of[q][j] = wasm_i32x4_sub(totals.of[q][j], again);
          }
        }
        if (g == 0) first_mins = of.mins;
        else pairs_of_minimums(pairs, many, first_mins, of.mins);
      }
      EACH_COLUMN {
        const vec sums = wasm_v128_load32_splat(of_groups + 16 * j);
        EACH_OF(many) minimums.of[q][j] = wasm_i32x4_add(minimums.of[q][j], wasm_i32x4_dot_i16x8(pairs[q], sums));
      }
    }
    const vec of_columns = load(behind), negated = wasm_f32x4_neg(of_columns);
    EACH_OF(many) add_floats(acc->of[q], n, minimums.of[q], quartet_q4_K(x, group, 1, 2 * part + q, k), negated);
    EACH_OF(many) add_floats(acc->of[q], n, totals.of[q], quartet_q4_K(x, group, 0, 2 * part + q, k), of_columns);
  }
}

// 16 weights of six bits: three steps as they lie, and a fourth of what is left of their bytes.
INLINE void add_16(tile_sums *sums, int many, int n, const uint8_t *y, const uint8_t *x, const constants *k, int dot) {
  vec fourth[4], w[4];
  UNROLLED for (int step = 0; step < 3; step++, x += TILE_STEP) {
    EACH_OF(many) {
      const vec packed = load(x + 16 * q);
      w[q] = wasm_v128_and(packed, k->six_bits);
      fourth[q] = add_to_fourth(step, fourth[q], wasm_v128_xor(packed, w[q]));
    }
    add_step(sums, many, n, load(y + 16 * step), w, dot);
    IN_ORDER(k);
  }
  EACH_OF(many) w[q] = wasm_u16x8_shr(fourth[q], 2);
  add_step(sums, many, n, load(y + 48), w, dot);
}

INLINE void multiply_q6_K(int32_t type, const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n, tile_sums *acc,
                          const constants *k, int dot) {
  (void)type;
  const int many = AT_ONCE(type, n);
  for (int64_t s = 0; s < super_blocks; s++, x += BYTES_Q6_K * TILE_ROWS, y += RECORD_K * 4) {
    const uint8_t *xq = x + QUANTS_Q6_K + 32 * part, *yq = y, *behind = y + SUPER_BLOCK * 4, *offsets = behind + 16;
    const uint8_t *words = x + SCALES_Q6_K + 32 * part;
    tile_sums totals = zero_tile();
    ROLLED for (int word = 0; word < 4; word++, words += TILE_STEP) {
      vec scales[4];
      EACH_OF(many) scales[q] = load(words + 16 * q);
      ROLLED for (int i = 0; i < 4; i++, xq += TILE_Q6_16, yq += 64, offsets += 16) {
        tile_sums sums;
        begin_sums(&sums, many, n, first_sums(load(offsets), dot, k->ones));
        add_16(&sums, many, n, yq, xq, k, dot);
        EACH_OF(many) {
          add_scaled(totals.of[q], n, sums.of[q], signed_scale(scales[q], dot, k), dot);
          scales[q] = wasm_u32x4_shr(scales[q], 8);
        }
      }
    }
    const vec of_columns = load(behind);
    EACH_OF(many) add_floats(acc->of[q], n, totals.of[q], quartet_of_halves(x, 2 * part + q, k), of_columns);
  }
}
