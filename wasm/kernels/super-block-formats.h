// The k-quants: super-blocks of 256 weights in 8 groups of 32. Layouts as in ggml-common.h.
//
//   format   bytes  layout                                                         value
//   Q2_K     84     16 × (4-bit scale, 4-bit min), 64 × 2 bits, f16 d, f16 dmin    d * s * q - dmin * m
//   Q3_K     110    32 high bits, 64 × 2 bits, 12 bytes of 6-bit scales, f16 d     d * (s - 32) * (q - 4)
//   Q4_K     144    f16 d, f16 dmin, 12 bytes of 6-bit scales and mins, 128 × 4    d * s * q - dmin * m
//   Q5_K     176    as Q4_K with 32 fifth bits before the nibbles                  d * s * q - dmin * m
//   Q6_K     210    128 × 4 bits, 64 × 2 bits, 16 × i8 scale, f16 d                d * s * (q - 32)
//   IQ4_XS   136    f16 d, u16 high and 4 bytes of low scale bits, 128 × nibbles   d * (s - 32) * code[q]
//
// Q4_K, Q5_K and IQ4_XS have a scale for each group of 32, the others one for each 16.
#pragma once
#include "formats.h"
#include "block-formats.h"

enum { SUPER_BLOCK = 256, GROUPS = 8 };


// --- the quants of group g (0..7), in order ---------------------------------------------------------------------

INLINE bytes32 group_q4_K(const uint8_t *quants, int g, const constants *k) {
  const vec a = load(quants + 32 * (g / 2)), b = load(quants + 32 * (g / 2) + 16);
  if (g & 1) return (bytes32){high_nibbles(a, k), high_nibbles(b, k)};
  return (bytes32){low_nibbles(a, k), low_nibbles(b, k)};
}

// Bit g of each byte, moved to bit `to` (2 or 4).
INLINE vec bit_of(vec bytes, int g, int to) {
  const vec moved = g > to ? wasm_u16x8_shr(bytes, g - to) : wasm_i16x8_shl(bytes, to - g);
  return wasm_v128_and(moved, wasm_i8x16_splat((int8_t)(1 << to)));
}

INLINE bytes32 group_q5_K(const uint8_t *x, int g, const constants *k) {
  const bytes32 low = group_q4_K(x + 48, g, k);
  return (bytes32){wasm_v128_or(low.low, bit_of(load(x + 16), g, 4)),
                   wasm_v128_or(low.high, bit_of(load(x + 32), g, 4))};
}

// Two bits of each byte: bits 2i and 2i+1, at the bottom (0) or moved to bits 4 and 5.
INLINE vec two_bits(vec bytes, int i) {
  return wasm_v128_and(i ? wasm_u16x8_shr(bytes, 2 * i) : bytes, wasm_i8x16_const_splat(3));
}
INLINE vec two_bits_at_4(vec bytes, int i, const constants *k) {
  const vec moved = i == 0 ? wasm_i16x8_shl(bytes, 4) : i == 1 ? wasm_i16x8_shl(bytes, 2) : i == 2 ? bytes
                                                                                          : wasm_u16x8_shr(bytes, 2);
  return wasm_v128_and(moved, k->high_pair);
}

INLINE bytes32 group_q6_K(const uint8_t *x, int g, const constants *k) {
  const int half = g / 4, i = g % 4;
  const uint8_t *low = x + 64 * half + 32 * (i & 1), *high = x + 128 + 32 * half;
  const vec a = load(low), b = load(low + 16);
  const vec la = i < 2 ? low_nibbles(a, k) : high_nibbles(a, k), lb = i < 2 ? low_nibbles(b, k) : high_nibbles(b, k);
  return (bytes32){wasm_v128_or(la, two_bits_at_4(load(high), i, k)),
                   wasm_v128_or(lb, two_bits_at_4(load(high + 16), i, k))};
}

INLINE bytes32 group_q2_K(const uint8_t *x, int g) {
  const uint8_t *quants = x + 16 + 32 * (g / 4);
  return (bytes32){two_bits(load(quants), g % 4), two_bits(load(quants + 16), g % 4)};
}

INLINE bytes32 group_q3_K(const uint8_t *x, int g) {
  const uint8_t *quants = x + 32 + 32 * (g / 4);
  return (bytes32){wasm_v128_or(two_bits(load(quants), g % 4), bit_of(load(x), g, 2)),
                   wasm_v128_or(two_bits(load(quants + 16), g % 4), bit_of(load(x + 16), g, 2))};
}

INLINE bytes32 group_iq4_xs(const uint8_t *x, int g, const constants *k) {
  const vec packed = load(x + 8 + 16 * g);
  return (bytes32){wasm_i8x16_relaxed_swizzle(k->codes, low_nibbles(packed, k)),
                   wasm_i8x16_relaxed_swizzle(k->codes, high_nibbles(packed, k))};
}

// --- the scales -------------------------------------------------------------------------------------------------

typedef struct {
  uint64_t scales; // byte g: scale of group g
  uint64_t mins;
} packed_scales;

// Q4_K and Q5_K: 8 six-bit scales and 8 six-bit mins in 12 bytes.
INLINE packed_scales scales_q4_K(const uint8_t *p) {
  uint32_t a, b, c;
  __builtin_memcpy(&a, p, 4);
  __builtin_memcpy(&b, p + 4, 4);
  __builtin_memcpy(&c, p + 8, 4);
  const uint32_t high_scales = (c & 0x0f0f0f0f) | ((a >> 6 & 0x03030303) << 4);
  const uint32_t high_mins = (c >> 4 & 0x0f0f0f0f) | ((b >> 6 & 0x03030303) << 4);
  return (packed_scales){(a & 0x3f3f3f3f) | (uint64_t)high_scales << 32, (b & 0x3f3f3f3f) | (uint64_t)high_mins << 32};
}

// Q3_K: 16 six-bit scales in 12 bytes, 32 too large: as 16 × i8.
INLINE vec scales_q3_K(const uint8_t *p) {
  uint32_t a, b, c;
  __builtin_memcpy(&a, p, 4);
  __builtin_memcpy(&b, p + 4, 4);
  __builtin_memcpy(&c, p + 8, 4);
  const uint32_t s0 = (a & 0x0f0f0f0f) | ((c & 0x03030303) << 4);
  const uint32_t s1 = (b & 0x0f0f0f0f) | ((c >> 2 & 0x03030303) << 4);
  const uint32_t s2 = (a >> 4 & 0x0f0f0f0f) | ((c >> 4 & 0x03030303) << 4);
  const uint32_t s3 = (b >> 4 & 0x0f0f0f0f) | ((c >> 6 & 0x03030303) << 4);
  const vec raw = wasm_i32x4_make((int32_t)s0, (int32_t)s1, (int32_t)s2, (int32_t)s3);
  return wasm_i8x16_sub(raw, wasm_i8x16_const_splat(32));
}

// IQ4_XS: scale of group g, -32..31.
INLINE int32_t scale_iq4_xs(const uint8_t *x, int g) {
  uint16_t high;
  __builtin_memcpy(&high, x + 2, 2);
  return (int32_t)((x[4 + g / 2] >> (4 * (g & 1)) & 0xf) | (high >> (2 * g) & 3) << 4) - 32;
}

// All eight scales as i8, the upper half of the vector is not used.
INLINE vec scales_iq4_xs(const uint8_t *x) {
  uint32_t low, high;
  __builtin_memcpy(&low, x + 4, 4);
  high = (uint32_t)x[2] | (uint32_t)x[3] << 8;
  // Nibble g of `low` to byte g, and two bits of `high` to bits 4 and 5 of it.
  uint64_t nibbles = (low & 0xffffull) | (uint64_t)(low >> 16) << 32;
  nibbles = (nibbles | nibbles << 8) & 0x00ff00ff00ff00ffull;
  nibbles = (nibbles | nibbles << 4) & 0x0f0f0f0f0f0f0f0full;
  uint64_t pairs = (high & 0xffull) | (uint64_t)(high >> 8) << 32;
  pairs = (pairs | pairs << 12) & 0x000f000f000f000full;
  pairs = (pairs | pairs << 6) & 0x0303030303030303ull;
  return wasm_i8x16_sub(wasm_i64x2_splat((int64_t)(nibbles | pairs << 4)), wasm_i8x16_const_splat(32));
}
