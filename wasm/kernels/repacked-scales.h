// What the kernels for one column and for several read of repacked weights in the same way: scales and bits.
#pragma once
#include "repacked-layout.h"

// The first or second four of eight halves, still to be scaled by f16_scale: see HALF_PLACE.
INLINE vec unscaled_halves(vec halves, int second, const constants *k) {
  return wasm_v128_and(wasm_i32x4_shr(second ? halves : wasm_i32x4_shl(halves, 16), 3), k->f16_bits);
}

// The halves of four rows at `x` as floats. Subnormal ones go another way, because arithmetic with subnormal floats is slow.
INLINE vec quartet_of_halves(const uint8_t *x, int quartet, const constants *k) {
  const vec bits = unscaled_halves(load(x + 16 * (quartet / 2)), quartet % 2, k), magnitude = wasm_v128_and(bits, k->magnitude);
  const vec normal = wasm_f32x4_mul(bits, k->f16_scale);
  const vec subnormal = wasm_f32x4_sub(wasm_i32x4_add(magnitude, k->least_half), k->least_half);
  return wasm_i32x4_relaxed_laneselect(normal, wasm_v128_or(subnormal, wasm_v128_andnot(bits, k->magnitude)),
                                       wasm_i32x4_gt(magnitude, k->most_subnormal));
}

// Of four rows, bytes of four groups each, a row in 32 bits: [groups 0..3 or 4..7].
typedef struct {
  vec scales[2], mins[2];
} scales_of_rows;

INLINE scales_of_rows read_scales_q4_K(const uint8_t *x, int quartet, const constants *k) {
  const uint8_t *words = x + SCALES_Q4_K + 16 * quartet;
  const vec a = load(words), b = load(words + TILE_STEP), c = load(words + 2 * TILE_STEP), six = k->six_bits;
  return (scales_of_rows){
      {wasm_v128_and(a, six), wasm_v128_or(low_nibbles(c, k), wasm_v128_and(wasm_u16x8_shr(a, 2), k->high_pair))},
      {wasm_v128_and(b, six), wasm_v128_or(high_nibbles(c, k), wasm_v128_and(wasm_u16x8_shr(b, 2), k->high_pair))}};
}

// Σ of minimum × sum of the activations, which stand in the order of SUM_ORDER, for four rows.
INLINE vec minimums_q4_K(const scales_of_rows *of, vec sums, const constants *k) {
  const vec even = k->low_bytes, low = of->mins[0], high = of->mins[1];
  return wasm_i32x4_add(wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_v128_and(low, even), splat_lane(sums, 0)),
                                       wasm_i32x4_dot_i16x8(wasm_u16x8_shr(low, 8), splat_lane(sums, 1))),
                        wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_v128_and(high, even), splat_lane(sums, 2)),
                                       wasm_i32x4_dot_i16x8(wasm_u16x8_shr(high, 8), splat_lane(sums, 3))));
}

// The lowest byte of each 32 bits as two i16. Loops over scales take it and shift the next one down: an array of scales
// would be checked for bounds at each store and load.
INLINE vec signed_byte_twice(vec words, const constants *k) {
  return wasm_i16x8_shr(wasm_i8x16_relaxed_swizzle(words, k->byte_twice_high), 8);
}

// Collects the fourth of four steps, left by two bits, from the two high bits of the bytes that hold the other three.
INLINE vec add_to_fourth(int step, vec fourth, vec high_bits) {
  return step == 0 ? high_bits : wasm_v128_or(fourth, wasm_u16x8_shr(high_bits, 2 * step));
}
