// Activations for repacked weights: one column by itself, or groups of four whose numbers stand beside each other.
//
//   Q4_0, IQ4_NL, MXFP4  for each 32: bytes [step][column][4], f32 scale [column], i16 offset [column][2]
//   Q8_0    for each 32: i16 [half][even or odd][step 0..3][column][2], f32 scale [column], i32 offset [column]
//   Q4_K    for each 256: bytes [step][column][4], f32 scale [column], i16 sum [column][of 8 groups]; one column by itself
//           has u32 sums, whose lower halves are those i16: a product with pairs of i16 takes them as they are
//   Q5_K    the same, and i16 offset [of 8 groups][column][2]
//   Q6_K    for each 256: bytes [step][column][4], f32 scale [column], i16 offset [of 16 groups][column][2]
//   IQ4_XS  for each 256: bytes [step][column][4], f32 scale [column], i16 offset [of 8 groups][column][2]
//
// Q8_0 meets the two even ones of four weights by themselves, and the two odd ones; where the machine has a dot product, all
// four, and its activations are bytes in the order of Q4_0, with the i32 offset, which signed bytes do without. An offset is what the weights'
// 8, 12, 32 or 128 adds up to, negated: sums begin with it. Those in i16 do so for the first and the second two weights of each
// step, and then fit (16·8·127 and 8·32·127 < 2^15). Q5_K's 16 is subtracted for this reason alone (16·16·127 < 2^15), and added
// again where sums are scaled.
#pragma once
#include "quantize-activations.h"
#include "repacked-layout.h"

// Bytes for each column.
enum { RECORD_Q4_0 = 40, RECORD_Q8_0 = 72, RECORD_Q8_0_DOT = 40, RECORD_K = 324 };

// Bytes of the sums of 32 in a record of so many columns.
INLINE size_t sums_of_record(int columns) { return columns == 1 ? 32 : 16 * (size_t)columns; }

typedef struct {
  uint8_t *record; // of the column's group
  int columns;     // in a group: 1 or 4
  int lane;        // of this column
} activation_place;

INLINE size_t record_bytes(int32_t type, int64_t k, int dot) {
  switch (format_of_repacked(type).record) {
  case BYTES_OF_32: return (size_t)(k / 32 * RECORD_Q4_0);
  case WORDS_OF_32: return (size_t)(k / 32 * (dot ? RECORD_Q8_0_DOT : RECORD_Q8_0));
  default: return (size_t)(k / SUPER_BLOCK * RECORD_K);
  }
}

INLINE void store_16_quants(activation_place at, int i, vec bytes) {
  uint8_t *to = at.record + (size_t)at.columns * 16 * i;
  if (at.columns == 1) store(to, bytes);
  else store_interleaved(to + 4 * at.lane, bytes);
}

// In every 32 bits: the sum of the bytes 0, 1, 4, 5, 8, … and that of the bytes 2, 3, 6, 7, …
INLINE vec sums_of_halves(vec bytes) {
  const vec pairs = wasm_i16x8_extadd_pairwise_i8x16(bytes);
  const vec two = wasm_i16x8_add(pairs, wasm_i32x4_shuffle(pairs, pairs, 2, 3, 0, 1));
  return wasm_i16x8_add(two, wasm_i32x4_shuffle(two, two, 1, 0, 3, 2));
}

INLINE void store_offset(uint8_t *to, vec halves, int subtracted) {
  wasm_v128_store32_lane(to, wasm_i16x8_mul(halves, wasm_i16x8_splat((int16_t)-subtracted)), 0);
}

INLINE vec even_bytes(vec bytes) { return wasm_i16x8_shr(wasm_i16x8_shl(bytes, 8), 8); }
INLINE vec odd_bytes(vec bytes) { return wasm_i16x8_shr(bytes, 8); }

// The scale, and the offset behind it; `to`: those of the group.
INLINE void store_scale_q8_0(uint8_t *to, quantized32 q, activation_place at) {
  const int32_t offset = -128 * (sum_bytes(q.quants.low) + sum_bytes(q.quants.high));
  __builtin_memcpy(to + 4 * at.lane, &q.scale, sizeof q.scale);
  __builtin_memcpy(to + 4 * (at.columns + at.lane), &offset, sizeof offset);
}

NOINLINE void quantize_blocks_as_words(const float *x, int64_t k, activation_place at) {
  for (int64_t b = 0; b < k / 32; b++, x += 32, at.record += RECORD_Q8_0 * at.columns) {
    const quantized32 q = quantize_32(x);
    store_16_quants(at, 0, even_bytes(q.quants.low));
    store_16_quants(at, 1, odd_bytes(q.quants.low));
    store_16_quants(at, 2, even_bytes(q.quants.high));
    store_16_quants(at, 3, odd_bytes(q.quants.high));
    store_scale_q8_0(at.record + 64 * at.columns, q, at);
  }
}

NOINLINE void quantize_blocks_for_dot(const float *x, int64_t k, activation_place at) {
  for (int64_t b = 0; b < k / 32; b++, x += 32, at.record += RECORD_Q8_0_DOT * at.columns) {
    const quantized32 q = quantize_32(x);
    store_16_quants(at, 0, q.quants.low);
    store_16_quants(at, 1, q.quants.high);
    store_scale_q8_0(at.record + 32 * at.columns, q, at);
  }
}

NOINLINE void quantize_blocks_of_32(const float *x, int64_t k, int subtracted, activation_place at) {
  for (int64_t b = 0; b < k / 32; b++, x += 32, at.record += RECORD_Q4_0 * at.columns) {
    const quantized32 q = quantize_32(x);
    store_16_quants(at, 0, q.quants.low);
    store_16_quants(at, 1, q.quants.high);
    uint8_t *scale = at.record + 32 * at.columns + 4 * at.lane;
    __builtin_memcpy(scale, &q.scale, sizeof q.scale);
    store_offset(scale + 4 * at.columns, wasm_i16x8_add(sums_of_halves(q.quants.low), sums_of_halves(q.quants.high)), subtracted);
  }
}

// `behind`: what follows the group's quants and scales.
INLINE void store_sum(uint8_t *behind, int g, vec low, vec high, activation_place at) {
  const int16_t sum = (int16_t)(sum_bytes(low) + sum_bytes(high));
  if (at.columns == 1) {
    const uint32_t alone = (uint16_t)sum;
    __builtin_memcpy(behind + 4 * g, &alone, sizeof alone);
  } else __builtin_memcpy(behind + 16 * at.lane + 2 * g, &sum, sizeof sum);
}

NOINLINE void quantize_super_blocks(repacked_format format, const float *x, int64_t k, activation_place at) {
  const int has_sums = format.scales == MINIMUMS;
  for (int64_t s = 0; s < k / SUPER_BLOCK; s++, at.record += RECORD_K * at.columns) {
    const float inverse = inverse_scale_256(x);
    const vec inverses = wasm_f32x4_splat(inverse);
    const float scale = inverse != 0 ? 1.f / inverse : 0.f;
    uint8_t *behind = at.record + SUPER_BLOCK * at.columns;
    __builtin_memcpy(behind + 4 * at.lane, &scale, sizeof scale);
    behind += 4 * at.columns;
    uint8_t *offsets = behind + (has_sums ? sums_of_record(at.columns) : 0) + 4 * at.lane;
    for (int g = 0; g < GROUPS; g++, x += 32) {
      const vec low = round_to_bytes(x, inverses), high = round_to_bytes(x + 16, inverses);
      store_16_quants(at, 2 * g, low);
      store_16_quants(at, 2 * g + 1, high);
      if (format.scales == HALVES_AND_WORDS) {
        store_offset(offsets + 4 * 2 * g * at.columns, sums_of_halves(low), format.subtracted);
        store_offset(offsets + 4 * (2 * g + 1) * at.columns, sums_of_halves(high), format.subtracted);
        continue;
      }
      if (has_sums) store_sum(behind, g, low, high, at);
      if (!format.subtracted) continue;
      const vec halves = wasm_i16x8_add(sums_of_halves(low), sums_of_halves(high));
      store_offset(offsets + 4 * g * at.columns, halves, format.subtracted);
    }
  }
}

// One column.
INLINE void quantize_record(int32_t type, const float *column, int64_t k, activation_place at, int dot) {
  const repacked_format format = format_of_repacked(type);
  if (format.record == BYTES_OF_32) quantize_blocks_of_32(column, k, format.subtracted, at);
  else if (format.record == BYTES_OF_256) quantize_super_blocks(format, column, k, at);
  else if (dot) quantize_blocks_for_dot(column, k, at);
  else quantize_blocks_as_words(column, k, at);
}
