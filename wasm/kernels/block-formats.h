// Weight formats in blocks of 32, and how 32 weights come out of a block as bytes. Layouts as in ggml-common.h of
// llama.cpp; a value is `scale * (unsigned - offset)` or `scale * unsigned + minimum` or `scale * code`.
//
//   format   bytes  layout                                              value
//   Q4_0     18     f16 d, 16 × two nibbles                             d * (q - 8)
//   Q4_1     20     f16 d, f16 m, 16 × two nibbles                      d * q + m
//   Q5_0     22     f16 d, u32 fifth bits, 16 × two nibbles             d * (q - 16)
//   Q5_1     24     f16 d, f16 m, u32 fifth bits, 16 × two nibbles      d * q + m
//   Q8_0     34     f16 d, 32 × i8                                      d * q
//   IQ4_NL   18     f16 d, 16 × two nibbles                             d * code[q]
//   MXFP4    17     u8 exponent, 16 × two nibbles                       2^(e-128) * code[q]
//
// The low nibbles are weights 0..15, the high ones 16..31.
#pragma once
#include "simd.h"

typedef struct {
  vec low;  // weights 0..15
  vec high; // weights 16..31
} bytes32;

typedef struct {
  int bytes;
  int quants_at; // where the 16 or 32 bytes of quants begin
  int fifth_bits_at;
  int has_minimum;
  int is_mxfp4;
  int five_bits; // unsigned quants reach above 15
  float offset;
} block_format;

#define FORMAT_Q4_0 ((block_format){18, 2, 0, 0, 0, 0, 8})
#define FORMAT_Q4_1 ((block_format){20, 4, 0, 1, 0, 0, 0})
#define FORMAT_Q5_0 ((block_format){22, 6, 2, 0, 0, 1, 16})
#define FORMAT_Q5_1 ((block_format){24, 8, 4, 1, 0, 1, 0})
#define FORMAT_Q8_0 ((block_format){34, 2, 0, 0, 0, 0, 0})
#define FORMAT_IQ4_NL ((block_format){18, 2, 0, 0, 0, 0, 0})
#define FORMAT_MXFP4 ((block_format){17, 1, 0, 0, 1, 1, 12})

INLINE vec low_nibbles(vec v, const constants *k) { return wasm_v128_and(v, k->nibble); }
// Shifts i16 and masks, because a shift of bytes takes five instructions.
INLINE vec high_nibbles(vec v, const constants *k) { return wasm_v128_and(wasm_u16x8_shr(v, 4), k->nibble); }

// Bits 0..15 (or from bit 16 on) of each lane of `bits` as 16 bytes of 0x10 or 0.
INLINE vec fifth_bits(vec bits, int from, const constants *k) {
  const vec which = from ? wasm_i8x16_add(k->spread, wasm_i8x16_const_splat(2)) : k->spread;
  const vec set = wasm_i8x16_eq(wasm_v128_and(wasm_i8x16_relaxed_swizzle(bits, which), k->bits), k->bits);
  return wasm_v128_and(set, wasm_i8x16_const_splat(0x10));
}

// Code books: the values that 4-bit codes stand for.
INLINE vec codes_iq4_nl(void) {
  return wasm_i8x16_const(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
}
// Moved up by 12, so that none is negative.
INLINE vec codes_mxfp4(void) { return wasm_i8x16_const(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0); }

// The unsigned quants of a block, 0..15 or 0..31.
INLINE bytes32 unpack_unsigned(const uint8_t *block, block_format format, const constants *k) {
  const vec packed = load(block + format.quants_at);
  bytes32 quants = {low_nibbles(packed, k), high_nibbles(packed, k)};
  if (format.is_mxfp4) {
    return (bytes32){wasm_i8x16_relaxed_swizzle(k->codes, quants.low), wasm_i8x16_relaxed_swizzle(k->codes, quants.high)};
  }
  if (format.fifth_bits_at) {
    const vec bits = wasm_v128_load32_splat(block + format.fifth_bits_at);
    quants.low = wasm_v128_or(quants.low, fifth_bits(bits, 0, k));
    quants.high = wasm_v128_or(quants.high, fifth_bits(bits, 16, k));
  }
  return quants;
}

// The signed quants of a block.
INLINE bytes32 unpack_signed(const uint8_t *block, int type_is_q8_0, int quants_at, const constants *k) {
  if (type_is_q8_0) return (bytes32){load(block + quants_at), load(block + quants_at + 16)};
  const vec packed = load(block + quants_at);
  return (bytes32){wasm_i8x16_relaxed_swizzle(k->codes, low_nibbles(packed, k)),
                   wasm_i8x16_relaxed_swizzle(k->codes, high_nibbles(packed, k))};
}

// Halves at the same offset of four rows, as floats.
INLINE vec f16_of_rows(const uint8_t *x, size_t row_bytes, const constants *k) {
  vec halves = ZERO_I32;
  halves = wasm_v128_load16_lane(x, halves, 0);
  halves = wasm_v128_load16_lane(x + row_bytes, halves, 1);
  halves = wasm_v128_load16_lane(x + 2 * row_bytes, halves, 2);
  halves = wasm_v128_load16_lane(x + 3 * row_bytes, halves, 3);
  return wasm_f32x4_mul(f16_bits_to_f32(wasm_i32x4_extend_low_i16x8(halves), k->f16_bits), k->f16_scale);
}

// Halves at two offsets of two rows: { first of row 0, first of row 1, second of row 0, second of row 1 }.
INLINE vec f16_of_pairs(const uint8_t *first, const uint8_t *second, size_t row_bytes, const constants *k) {
  vec halves = ZERO_I32;
  halves = wasm_v128_load16_lane(first, halves, 0);
  halves = wasm_v128_load16_lane(first + row_bytes, halves, 1);
  if (second != first) {
    halves = wasm_v128_load16_lane(second, halves, 2);
    halves = wasm_v128_load16_lane(second + row_bytes, halves, 3);
  }
  return wasm_f32x4_mul(f16_bits_to_f32(wasm_i32x4_extend_low_i16x8(halves), k->f16_bits), k->f16_scale);
}

// MXFP4's exponent byte as half of its power of two: the code book holds doubled values.
INLINE float half_power_of_two(uint8_t exponent) {
  const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (uint32_t)(exponent - 1) << 23;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

INLINE vec exponents_of_rows(const uint8_t *x, size_t row_bytes) {
  return wasm_f32x4_make(half_power_of_two(x[0]), half_power_of_two(x[row_bytes]), half_power_of_two(x[2 * row_bytes]),
                         half_power_of_two(x[3 * row_bytes]));
}
