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

// Two to four columns with a dot product of bytes.
INLINE void multiply_dot_iq4_xs(const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n, tile_sums *acc,
                                const constants *k) {
  const int many = AT_ONCE(TYPE_IQ4_XS, n);
  const vec two_bits_up = TWO_BITS_UP, too_large = opaque(wasm_i32x4_const_splat(32));
  const vec factor = factor_of_offset(TYPE_IQ4_XS, k);
  const vec picks[4] = PICKS(1), *pick = picks + 2 * part;
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * GROUP_IQ4_XS, y += RECORD_K * 4) {
    tile_sums totals = zero_tile();
    const uint8_t *yq = y, *xq = x, *offsets = y + SUPER_BLOCK * 4 + 16;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 128, xq += GROUP_IQ4_XS, offsets += 16) {
      tile_sums sums;
      begin_sums(&sums, many, n, first_sums(load(offsets), 1, factor));
      add_32(&sums, many, n, yq, xq + QUANTS_IQ4_XS + 32 * part, 1, k, 1);
      const vec scales = scales_of_iq4_xs(xq, two_bits_up, k);
      EACH_OF(many) {
        const vec scale = wasm_i32x4_sub(wasm_i8x16_relaxed_swizzle(scales, pick[q]), too_large);
        add_scaled(totals.of[q], n, sums.of[q], scale, 1);
      }
    }
    const vec of_columns = load(y + SUPER_BLOCK * 4);
    EACH_OF(many) add_floats(acc->of[q], n, totals.of[q], quartet_iq4_xs(x, 2 * part + q, k), of_columns);
  }
}

// Without one a quartet at a time: what stands for two of them elsewhere, is the line and the rest of its rows here.
enum { LINE, REST };

// 32 weights.
INLINE void add_line_and_rest(tile_sums *sums, int n, const uint8_t *y, const uint8_t *x, const constants *k) {
  UNROLLED for (int pair = 0; pair < 4; pair++, x += TILE_STEP, y += 32) {
    const vec packed = load(x), low = low_nibbles(packed, k), of_low[2] = {low, weights_of_nibbles(low, 1, k)};
    add_step(sums, 2, n, load(y), of_low, 0);
    IN_ORDER(k);
    const vec high = high_nibbles(packed, k), of_high[2] = {high, weights_of_nibbles(high, 1, k)};
    add_step(sums, 2, n, load(y + 16), of_high, 0);
    IN_ORDER(k);
  }
}

INLINE void multiply_quartet_iq4_xs(const uint8_t *x, int quartet, int64_t super_blocks, const uint8_t *y, int n, vec *acc,
                                    const constants *k) {
  const vec two_bits_up = TWO_BITS_UP, fifteen = opaque(wasm_i16x8_const_splat(15));
  const vec too_large = opaque(wasm_i16x8_const_splat(32));
  const vec picks[4] = PICKS(0), pick = picks[quartet];
  for (int64_t s = 0; s < super_blocks; s++, x += GROUPS * GROUP_IQ4_XS, y += RECORD_K * 4) {
    vec totals[4] = {ZERO_I32, ZERO_I32, ZERO_I32, ZERO_I32};
    const uint8_t *yq = y, *xq = x, *offsets = y + SUPER_BLOCK * 4 + 16;
    ROLLED for (int g = 0; g < GROUPS; g++, yq += 128, xq += GROUP_IQ4_XS, offsets += 16) {
      tile_sums sums;
      begin_sums(&sums, 2, n, load(offsets));
      add_line_and_rest(&sums, n, yq, xq + QUANTS_IQ4_XS + 16 * quartet, k);
      const vec scale = wasm_i16x8_sub(wasm_i8x16_relaxed_swizzle(scales_of_iq4_xs(xq, two_bits_up, k), pick), too_large);
      add_scaled(totals, n, sums.of[LINE], wasm_i16x8_mul(scale, fifteen), 0);
      add_scaled(totals, n, sums.of[REST], scale, 0);
    }
    add_floats(acc, n, totals, quartet_iq4_xs(x, quartet, k), load(y + SUPER_BLOCK * 4));
  }
}

INLINE void multiply_iq4_xs(int32_t type, const uint8_t *x, int part, int64_t super_blocks, const uint8_t *y, int n, tile_sums *acc,
                            const constants *k, int dot) {
  (void)type;
  if (dot) {
    multiply_dot_iq4_xs(x, part, super_blocks, y, n, acc, k);
    return;
  }
  ROLLED for (int q = 0; q < AT_ONCE(type, n); q++) multiply_quartet_iq4_xs(x, 2 * part + q, super_blocks, y, n, acc->of[q], k);
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

INLINE void multiply_quartet_iq4_nl(const uint8_t *x, int quartet, int64_t blocks, const uint8_t *y, int n, vec *acc,
                                    const constants *k) {
  const vec fifteen = opaque(wasm_i16x8_const_splat(15));
  ROLLED for (int64_t b = 0; b < blocks; b++, x += TILE_Q4_0, y += RECORD_Q4_0 * 4) {
    const vec d = halves_of_block(x, quartet / 2, 2, k).d[quartet % 2];
    tile_sums sums;
    begin_sums(&sums, 2, n, load(y + 144));
    add_line_and_rest(&sums, n, y, x + TILE_HALVES + 16 * quartet, k);
    EACH_COLUMN sums.of[LINE][j] = line_and_rest(sums.of[LINE][j], sums.of[REST][j], fifteen, k);
    add_floats(acc, n, sums.of[LINE], d, load(y + 128));
  }
}

INLINE void multiply_iq4_nl(int32_t type, const uint8_t *x, int part, int64_t blocks, const uint8_t *y, int n, tile_sums *acc,
                            const constants *k, int dot) {
  if (dot) {
    multiply_blocks(type, x, part, blocks, y, n, acc, k, dot);
    return;
  }
  ROLLED for (int q = 0; q < AT_ONCE(type, n); q++) multiply_quartet_iq4_nl(x, 2 * part + q, blocks, y, n, acc->of[q], k);
}
