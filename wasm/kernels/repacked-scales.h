// What the kernels for one column and for several read of repacked weights in the same way: scales and bits.
#pragma once
#include "repacked-layout.h"

// The first or second four of eight halves, still to be scaled by f16_scale: see HALF_PLACE.
INLINE vec unscaled_halves(vec halves, int second, const constants *k) {
  return wasm_v128_and(wasm_i32x4_shr(second ? halves : wasm_i32x4_shl(halves, 16), 3), k->f16_bits);
}

// The same halves as floats. Not by a multiplication: one with a subnormal float takes over 100 cycles. Adding to the exponent
// is right for normal halves and makes 2^-15 + x / 2 of a subnormal x; twice that, less 2^-14, is x, and of a normal half it is
// no less than the half itself.
INLINE vec scaled_halves(vec bits, const constants *k) {
  const vec magnitude = wasm_v128_and(bits, k->magnitude), normal = wasm_i32x4_add(magnitude, k->rebias);
  const vec subnormal = wasm_f32x4_sub(wasm_f32x4_add(normal, normal), k->least_half);
  return wasm_v128_or(wasm_f32x4_relaxed_min(normal, subnormal), wasm_v128_xor(bits, magnitude));
}

// The halves of four rows of a tile whose halves stand at `x`.
INLINE vec quartet_of_halves(const uint8_t *x, int quartet, const constants *k) {
  return scaled_halves(unscaled_halves(load(x + 16 * (quartet / 2)), quartet % 2, k), k);
}

// Blocks of 32 have so many halves that scaled_halves would take a fifth of their time: they multiply unless one is subnormal,
// or zero. `exponents`: those of eight halves, or the least of several eights.
INLINE vec exponents_of_halves(vec halves, const constants *k) { return wasm_v128_and(halves, k->half_exponent); }
INLINE int any_subnormal(vec exponents) {
  return __builtin_expect(wasm_v128_any_true(wasm_i16x8_eq(exponents, ZERO_I16)), 0);
}

// Half the powers of two of all rows of MXFP4, whose codes are doubled: the bits of a float's exponent, less one. The two least
// ones, 2^-128 and 2^-127, which would be subnormal, count as zero.
INLINE vec halved_exponents(const uint8_t *x, const constants *k) { return wasm_u8x16_sub_sat(load(x), k->one); }
// Those of a quartet.
INLINE vec powers_of_quartet(vec exponents, int quartet, const constants *k) {
  const vec moved = quartet == 3 ? wasm_u32x4_shr(exponents, 1) : wasm_i32x4_shl(exponents, 23 - 8 * quartet);
  return wasm_v128_and(moved, k->exponent);
}

// d, or dmin, of four rows of the tile at `x`, of Q4_K or Q5_K, whose groups have `group` bytes: here and below.
INLINE vec quartet_q4_K(const uint8_t *x, size_t group, int is_minimum, int quartet, const constants *k) {
  const vec halves = wasm_i32x4_load16x4(x + group * (size_t)(4 * is_minimum + quartet) + HALVES_Q4_K);
  return scaled_halves(f16_bits_to_f32(halves, k->f16_bits), k);
}

// Scales and minimums of a group, a byte for each row of a tile, or of half of one.
typedef struct {
  vec scales, mins;
} row_scales;

INLINE row_scales scales_of_group(const uint8_t *x, int part, int quartets, const constants *k) {
  vec bytes, low;
  if (quartets == 4) {
    const vec nibbles = load(x + MINIMUMS_Q4_K);
    bytes = load(x), low = wasm_i64x2_shuffle(low_nibbles(nibbles, k), high_nibbles(nibbles, k), 0, 2);
  } else {
    const vec nibbles = wasm_v128_load64_zero(x + MINIMUMS_Q4_K);
    bytes = wasm_v128_load64_zero(x + 8 * part), low = low_nibbles(wasm_u16x8_shr(nibbles, (uint32_t)(4 * part)), k);
  }
  return (row_scales){wasm_v128_and(bytes, k->six_bits), wasm_v128_or(low, wasm_v128_and(wasm_u16x8_shr(bytes, 2), k->high_pair))};
}

// Sums of products of four activations and four weights are i32 where the machine has a dot product, `dot`, and else two i16
// that stay apart until they are scaled.
INLINE vec add_products(vec sums, vec activations, vec weights, int dot) {
  return dot ? add_dot(activations, weights, sums) : wasm_i16x8_add(sums, dot_i8_u7(activations, weights));
}
// Nibbles are numbers, or stand for those of the code book.
INLINE vec weights_of_nibbles(vec nibbles, int coded, const constants *k) {
  return coded ? wasm_i8x16_relaxed_swizzle(k->codes, nibbles) : nibbles;
}
INLINE vec sums_as_i32(vec sums, int dot, const constants *k) { return dot ? sums : wasm_i32x4_dot_i16x8(sums, k->ones); }
// What sums begin with, of two i16 times this: the codes of IQ4 are moved up by 128 for an unsigned dot product, 16 times the 8
// of the offset, and not at all for a signed one.
INLINE vec factor_of_offset(int32_t type, const constants *k) {
  if (type != TYPE_IQ4_XS && type != TYPE_IQ4_NL) return k->ones;
  return k->dot == UNSIGNED_DOT ? k->sixteen : ZERO_I16;
}
INLINE vec first_sums(vec offset, int dot, vec factor) { return dot ? wasm_i32x4_dot_i16x8(offset, factor) : offset; }
// `scale` as the functions below give it.
INLINE vec add_scaled_sums(vec totals, vec sums, vec scale, int dot) {
  return wasm_i32x4_add(totals, dot ? wasm_i32x4_mul(sums, scale) : wasm_i32x4_dot_i16x8(sums, scale));
}

// The lowest byte of each 32 bits, which is a scale, as two i16, or as an i32. Loops over scales take it and shift the next
// one down: an array of scales would be checked for bounds at each store and load.
INLINE vec signed_scale(vec words, int dot, const constants *k) {
  if (dot) return wasm_i32x4_shr(wasm_i32x4_shl(words, 24), 24);
  return wasm_i16x8_shr(wasm_i8x16_relaxed_swizzle(words, k->byte_twice_high), 8);
}

// Collects the fourth of four steps, left by two bits, from the two high bits of the bytes that hold the other three.
INLINE vec add_to_fourth(int step, vec fourth, vec high_bits) {
  return step == 0 ? high_bits : wasm_v128_or(fourth, wasm_u16x8_shr(high_bits, 2 * step));
}

// Weights of five bits, of which pairs of steps stand in a byte: the first of the two, and the second from the three bits above
// it and two that stand elsewhere. `shared`: the two bits of all three such pairs, from the high bits to the low ones.
INLINE vec five_bits(vec packed, const constants *k) { return wasm_v128_and(packed, k->five_bits); }
INLINE vec shared_bits(vec first, vec second, const constants *k) {
  const vec a = wasm_v128_xor(first, five_bits(first, k)), b = wasm_v128_xor(second, five_bits(second, k));
  return wasm_v128_or(a, wasm_u16x8_shr(b, 3));
}
INLINE vec five_bits_above(int pair, vec packed, vec shared, const constants *k) {
  const vec two_bits = pair == 0 ? wasm_u16x8_shr(shared, 3) : pair == 1 ? wasm_u16x8_shr(shared, 1) : wasm_i16x8_shl(shared, 1);
  const vec three_bits = wasm_u16x8_shr(wasm_v128_xor(packed, five_bits(packed, k)), 5);
  return wasm_v128_or(three_bits, wasm_v128_and(two_bits, k->two_bits_at_3));
}

// Sixteen weights of Q8_0 for a dot product: as they lie, moved up by 128, or as signed bytes.
INLINE vec bytes_q8_0(const uint8_t *x, int is_signed, const constants *k) {
  return is_signed ? wasm_v128_xor(load(x), k->sign_bits) : load(x);
}
