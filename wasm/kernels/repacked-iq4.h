// IQ4_XS and IQ4_NL, repacked: nibbles that stand for codes of eight bits, -127 to 113.
//
// A dot product of bytes takes the codes themselves: moved up by 128 where its second operand is unsigned, as they are where it is
// signed. Without one a code does not fit its seven bits. But the codes lie near a line: code = 15·(nibble - 8) + (rest - 8)
// with a rest of 1 to 19. So the nibbles are multiplied as they are, the rests by themselves, and both sums fit an i16 when they
// begin with the same offset (16·8·127 and 16·11·127 < 2^15). Two planes of nibbles, or products of 16 bits, would take one
// instruction more for each four weights of a quartet, and the latter activations of their own.
#pragma once
#include "repacked-multiply.h"

INLINE vec rests_of_iq4(void) { return wasm_i8x16_const(1, 9, 15, 18, 19, 18, 16, 13, 9, 6, 3, 1, 1, 2, 7, 16); }

INLINE vec codes_of_iq4(int dot) {
  if (dot == NO_DOT) return rests_of_iq4();
  return dot == UNSIGNED_DOT ? wasm_v128_xor(codes_iq4_nl(), wasm_i8x16_const_splat(-128)) : codes_iq4_nl();
}

// The scales of a group's sixteen rows, 32 too large, as bytes.
INLINE vec scales_of_iq4_xs(const uint8_t *x, vec two_bits_up, const constants *k) {
  const vec packed = load(x), high = wasm_i16x8_mul(splat_lane(packed, 2), two_bits_up);
  const vec low = wasm_i64x2_shuffle(low_nibbles(packed, k), high_nibbles(packed, k), 0, 2);
  return wasm_v128_or(low, wasm_v128_and(wasm_u16x8_shr(high, 2), k->high_pair));
}
// What brings the two bits of each quartet to the highest ones of their bytes.
#define TWO_BITS_UP opaque(wasm_i16x8_const(64, 64, 16, 16, 4, 4, 1, 1))

// d of four rows of the super-block at `x`.
INLINE vec quartet_iq4_xs(const uint8_t *x, int quartet, const constants *k) {
  const uint8_t *at = x + GROUP_IQ4_XS * 2 * quartet + HALVES_IQ4_XS;
  const vec halves = wasm_v128_load32_lane(at + GROUP_IQ4_XS, wasm_v128_load32_zero(at), 1);
  return scaled_halves(f16_bits_to_f32(wasm_i32x4_extend_low_i16x8(halves), k->f16_bits), k);
}

// 16 weights, as nibbles and as rests.
INLINE void gemv_line_and_rest(vec *line, vec *rest, const uint8_t *y, const uint8_t *x, const constants *k) {
  const vec quants = load(y);
#define ADD(lane, nibbles)                                                                                       \
  {                                                                                                              \
    const vec column = splat_lane(quants, lane), w = nibbles;                                                    \
    line[q] = add_products(line[q], column, w, 0);                                                               \
    rest[q] = add_products(rest[q], column, weights_of_nibbles(w, 1, k), 0);                                     \
  }
  EACH_QUARTET {
    const vec first = load(x + 16 * q), second = load(x + 16 * q + TILE_STEP);
    ADD(0, low_nibbles(first, k))
    ADD(1, high_nibbles(first, k))
    ADD(2, low_nibbles(second, k))
    ADD(3, high_nibbles(second, k))
  }
#undef ADD
}

INLINE void gemv_iq4_xs(int32_t type, const uint8_t *x, int64_t super_blocks, const uint8_t *y, float *out, constants k, int dot) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const vec two_bits_up = TWO_BITS_UP, fifteen = opaque(wasm_i16x8_const_splat(15));
  const vec too_large = dot ? opaque(wasm_i32x4_const_splat(32)) : opaque(wasm_i16x8_const_splat(32));
  const vec factor = factor_of_offset(type, &k);
  vec pick[4] = PICKS(0);
  if (dot) {
    const vec words[4] = PICKS(1);
    EACH_QUARTET pick[q] = words[q];
  }
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * GROUP_IQ4_XS, y += RECORD_K) {
    vec totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    const uint8_t *yq = y, *xq = x, *offsets = y + SUPER_BLOCK + 4;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 32, xq += GROUP_IQ4_XS, offsets += 4) {
      const vec offset = wasm_v128_load32_splat(offsets);
      if (dot) {
        const vec first = first_sums(offset, 1, factor);
        vec sums[4] = {first, first, first, first};
        gemv_32(sums, yq, xq + QUANTS_IQ4_XS, 1, &k, 1);
        IN_ORDER(&k);
        const vec scales = scales_of_iq4_xs(xq, two_bits_up, &k);
        EACH_QUARTET {
          const vec scale = wasm_i32x4_sub(wasm_i8x16_relaxed_swizzle(scales, pick[q]), too_large);
          totals[q] = add_scaled_sums(totals[q], sums[q], scale, 1);
        }
        continue;
      }
      vec line[4] = {offset, offset, offset, offset}, rest[4] = {offset, offset, offset, offset};
      gemv_line_and_rest(line, rest, yq, xq + QUANTS_IQ4_XS, &k);
      IN_ORDER(&k);
      gemv_line_and_rest(line, rest, yq + 16, xq + QUANTS_IQ4_XS + 2 * TILE_STEP, &k);
      IN_ORDER(&k);
      const vec scales = scales_of_iq4_xs(xq, two_bits_up, &k);
      EACH_QUARTET {
        const vec scale = wasm_i16x8_sub(wasm_i8x16_relaxed_swizzle(scales, pick[q]), too_large);
        totals[q] = add_scaled_sums(totals[q], line[q], wasm_i16x8_mul(scale, fifteen), 0);
        totals[q] = add_scaled_sums(totals[q], rest[q], scale, 0);
      }
    }
    const vec y_scale = wasm_v128_load32_splat(y + SUPER_BLOCK);
    EACH_QUARTET acc[q] = madd(to_f32(totals[q]), wasm_f32x4_mul(quartet_iq4_xs(x, q, &k), y_scale), acc[q]);
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

// Two to four columns with a dot product of bytes: half a tile.
INLINE void multiply_dot_iq4_xs(const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n, repacked_results out,
                                constants k) {
  eight_rows acc = zero_rows();
  const vec two_bits_up = TWO_BITS_UP, too_large = opaque(wasm_i32x4_const_splat(32));
  const vec factor = factor_of_offset(TYPE_IQ4_XS, &k);
  const vec picks[4] = PICKS(1), pick[2] = {picks[2 * part], picks[2 * part + 1]};
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * GROUP_IQ4_XS, y += RECORD_K * 4) {
    eight_rows totals = zero_rows();
    const uint8_t *yq = y, *xq = x, *offsets = y + SUPER_BLOCK * 4 + 16;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 128, xq += GROUP_IQ4_XS, offsets += 16) {
      eight_rows sums;
      begin_sums(&sums, n, first_sums(load(offsets), 1, factor));
      add_32(&sums, n, yq, xq + QUANTS_IQ4_XS + 32 * part, 1, &k, 1);
      const vec scales = scales_of_iq4_xs(xq, two_bits_up, &k);
      vec scale[2];
      EACH_HALF scale[h] = wasm_i32x4_sub(wasm_i8x16_relaxed_swizzle(scales, pick[h]), too_large);
      add_scaled(&totals, n, &sums, scale, 1);
    }
    const vec d[2] = {quartet_iq4_xs(x, 2 * part, &k), quartet_iq4_xs(x, 2 * part + 1, &k)};
    add_floats(&acc, n, &totals, d, load(y + SUPER_BLOCK * 4));
  }
  store_rows(&acc, n, out);
}

// Without one a quartet at a time: what stands for half a tile elsewhere, is the line and the rest of its four rows here.

// 32 weights.
INLINE void add_line_and_rest(eight_rows *sums, int n, const uint8_t *y, const uint8_t *x, const constants *k) {
  UNROLLED for (int pair = 0; pair < 4; pair++, x += TILE_STEP, y += 32) {
    const vec packed = load(x), low = low_nibbles(packed, k);
    add_step(sums, n, load(y), low, weights_of_nibbles(low, 1, k), 0);
    IN_ORDER(k);
    const vec high = high_nibbles(packed, k);
    add_step(sums, n, load(y + 16), high, weights_of_nibbles(high, 1, k), 0);
    IN_ORDER(k);
  }
}
INLINE void store_quartet(const vec *acc, int n, repacked_results out) {
  EACH_COLUMN if (j < out.columns) store((uint8_t *)out.first + (size_t)j * out.column_bytes, acc[j]);
}

INLINE void multiply_quartet_iq4_xs(const uint8_t *x, int quartet, int64_t super_blocks, const uint8_t *y, int n,
                                    repacked_results out, const constants *k) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const vec two_bits_up = TWO_BITS_UP, fifteen = opaque(wasm_i16x8_const_splat(15));
  const vec too_large = opaque(wasm_i16x8_const_splat(32));
  const vec picks[4] = PICKS(0), pick = picks[quartet];
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * GROUP_IQ4_XS, y += RECORD_K * 4) {
    vec totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    const uint8_t *yq = y, *xq = x, *offsets = y + SUPER_BLOCK * 4 + 16;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 128, xq += GROUP_IQ4_XS, offsets += 16) {
      eight_rows sums;
      begin_sums(&sums, n, load(offsets));
      add_line_and_rest(&sums, n, yq, xq + QUANTS_IQ4_XS + 16 * quartet, k);
      const vec scale = wasm_i16x8_sub(wasm_i8x16_relaxed_swizzle(scales_of_iq4_xs(xq, two_bits_up, k), pick), too_large);
      const vec of_line = wasm_i16x8_mul(scale, fifteen);
      EACH_COLUMN totals[j] = add_scaled_sums(add_scaled_sums(totals[j], sums.half[0][j], of_line, 0), sums.half[1][j], scale, 0);
    }
    const vec d = quartet_iq4_xs(x, quartet, k), of_columns = load(y + SUPER_BLOCK * 4);
    EACH_COLUMN acc[j] = madd(to_f32(totals[j]), wasm_f32x4_mul(d, splat_number(of_columns, j)), acc[j]);
  }
  store_quartet(acc, n, out);
}

INLINE void multiply_iq4_xs(int32_t type, const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n,
                            repacked_results out, constants k, int dot) {
  (void)type;
  if (dot) {
    multiply_dot_iq4_xs(x, part, super_blocks, y, n, out, k);
    return;
  }
  ROLLED for (int half = 0; half < 2; half++, out.first += 4) {
    multiply_quartet_iq4_xs(x, 2 * part + half, super_blocks, y, n, out, &k);
  }
}

// --- IQ4_NL: with a dot product it is a matter of gemv_blocks and multiply_blocks ---------------------------------

INLINE vec line_and_rest(vec line, vec rest, vec fifteen, const constants *k) {
  return wasm_i32x4_add(wasm_i32x4_dot_i16x8(line, fifteen), wasm_i32x4_dot_i16x8(rest, k->ones));
}

INLINE void gemv_iq4_nl(int32_t type, const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k, int dot) {
  if (dot) {
    gemv_blocks(type, x, blocks, y, out, k, dot);
    return;
  }
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const vec fifteen = opaque(wasm_i16x8_const_splat(15));
  for (int64_t b = 0; b < blocks; b++, x += TILE_Q4_0, y += RECORD_Q4_0) {
    const vec first = wasm_v128_load32_splat(y + 36);
    vec line[4] = {first, first, first, first}, rest[4] = {first, first, first, first};
    gemv_line_and_rest(line, rest, y, x + TILE_HALVES, &k);
    IN_ORDER(&k);
    gemv_line_and_rest(line, rest, y + 16, x + TILE_HALVES + 2 * TILE_STEP, &k);
    EACH_QUARTET line[q] = line_and_rest(line[q], rest[q], fifteen, &k);
    add_block(acc, line, x, wasm_v128_load32_splat(y + 32), &k);
  }
  EACH_QUARTET store(out + 4 * q, acc[q]);
}

INLINE void multiply_quartet_iq4_nl(const uint8_t *x, int quartet, int64_t blocks, const uint8_t *y, int n, repacked_results out,
                                    const constants *k) {
  vec acc[4] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  const vec fifteen = opaque(wasm_i16x8_const_splat(15));
  for (int64_t b = 0; b < blocks; b++, x += TILE_Q4_0, y += RECORD_Q4_0 * 4) {
    const vec d = halves_of_blocks(load(x + 16 * (quartet / 2)), k).d[quartet % 2];
    eight_rows sums;
    begin_sums(&sums, n, load(y + 144));
    add_line_and_rest(&sums, n, y, x + TILE_HALVES + 16 * quartet, k);
    const vec of_columns = load(y + 128);
    EACH_COLUMN {
      const vec total = line_and_rest(sums.half[0][j], sums.half[1][j], fifteen, k);
      acc[j] = madd(to_f32(total), wasm_f32x4_mul(d, splat_number(of_columns, j)), acc[j]);
    }
  }
  store_quartet(acc, n, out);
}

INLINE void multiply_iq4_nl(int32_t type, const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n,
                            repacked_results out, constants k, int dot) {
  if (dot) {
    multiply_blocks(type, x, part, blocks, y, n, out, k, dot);
    return;
  }
  multiply_quartet_iq4_nl(x, 2 * part, blocks, y, n, out, &k);
  out.first += 4;
  multiply_quartet_iq4_nl(x, 2 * part + 1, blocks, y, n, out, &k);
}
