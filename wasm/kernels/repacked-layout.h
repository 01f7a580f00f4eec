// Weights repacked once, in place, when a model has been loaded: eight rows stand beside each other, so that a lane of a
// vector is a row. No sums across lanes are left, one load of activations serves eight rows, and all of a matrix is one
// stream. A group of eight rows takes the bytes that the rows took.
//
// Quants of 32 weights of the eight rows, 128 bytes, from the low nibbles: [pair of steps 0..3][half 0..1][row 0..3][4
// weights], a step being four weights of a row; the low nibbles are the even step, the high ones the odd step.
//
//   format  bytes  of eight rows
//   Q4_0    144    f16 d [row], the quants of 32 weights
//   Q4_K    1152   f16 d [row], f16 dmin [row], u32 [word 0..2][row] (the 12 bytes of scales), 8 × quants
//   Q6_K    1680   f16 d [row], u32 [word 0..3][row] (the 16 scales), 16 × (quants of 16 weights, their high bits)
//
// High bits of Q6_K, 32 bytes for 16 weights: [half][row][4 weights], with the two bits of a step at the place from which
// they reach bits 4 and 5 in the least instructions: HIGH_BITS_AT.
#pragma once
#include "gemm-panel.h"
#include "tensor.h"

// Bytes of 32 weights of the eight rows, of their low nibbles, and of 16 weights with six bits.
enum { REPACKED_ROWS = 8, REPACKED_Q4 = 128, REPACKED_Q6_16 = 96 };
enum { SCALES_Q4_K = 32, QUANTS_Q4_K = 128, SCALES_Q6_K = 16, QUANTS_Q6_K = 144 };

#define HIGH_BITS_AT(step) ((step) % 4 == 0 ? 4 : (step) % 4 == 1 ? 0 : (step) % 4 == 2 ? 2 : 6)

INLINE int can_repack(int32_t type) { return type == TYPE_Q4_0 || type == TYPE_Q4_K || type == TYPE_Q6_K; }
INLINE int64_t weights_of_block(int32_t type) { return type == TYPE_Q4_0 ? 32 : SUPER_BLOCK; }
INLINE size_t bytes_of_block(int32_t type) { return type == TYPE_Q4_0 ? 18 : type == TYPE_Q4_K ? BYTES_Q4_K : BYTES_Q6_K; }
// Where the halves that scale a block stand in it: one or two beside each other.
INLINE size_t halves_at(int32_t type) { return type == TYPE_Q6_K ? 208 : 0; }
INLINE size_t halves_of(int32_t type) { return type == TYPE_Q4_K ? 2 : 1; }
INLINE size_t words_at(int32_t type) { return type == TYPE_Q4_K ? 4 : 192; }
INLINE size_t words_of(int32_t type) { return type == TYPE_Q4_0 ? 0 : type == TYPE_Q4_K ? 3 : 4; }

// Where the nibbles of steps 2p and 2p + 1 of 32 weights stand, and the high bits of a step.
INLINE size_t nibbles_at(int32_t type, int pair) { return (size_t)(type == TYPE_Q6_K ? pair / 2 * REPACKED_Q6_16 + pair % 2 * 32 : 32 * pair); }
INLINE size_t high_bits_at(int step) { return (size_t)(step / 4 * REPACKED_Q6_16 + 64); }
INLINE size_t repacked_32(int32_t type) { return type == TYPE_Q6_K ? 2 * REPACKED_Q6_16 : REPACKED_Q4; }

INLINE bytes32 quants_of_group(int32_t type, const uint8_t *block, int g, const constants *k) {
  if (type == TYPE_Q4_0) return unpack_unsigned(block, FORMAT_Q4_0, k);
  if (type == TYPE_Q4_K) return group_q4_K(block + 16, g, k);
  return group_q6_K(block, g, k);
}

// 32 weights of eight rows.
INLINE void repack_quants(int32_t type, const uint8_t *block, size_t row_bytes, int g, uint8_t *to, const constants *k) {
  for (int half = 0; half < 2; half++) {
    const uint8_t *x = block + 4 * (size_t)half * row_bytes;
    uint8_t steps[128];
    store_plane(quants_of_group(type, x, g, k), quants_of_group(type, x + row_bytes, g, k),
                quants_of_group(type, x + 2 * row_bytes, g, k), quants_of_group(type, x + 3 * row_bytes, g, k), steps);
    for (int pair = 0; pair < 4; pair++) {
      const vec even = low_nibbles(load(steps + 32 * pair), k), odd = low_nibbles(load(steps + 32 * pair + 16), k);
      store(to + nibbles_at(type, pair) + 16 * half, wasm_v128_or(even, wasm_i16x8_shl(odd, 4)));
    }
    if (type != TYPE_Q6_K) continue;
    for (int four = 0; four < 2; four++) {
      vec bits = ZERO_I32;
      for (int step = 0; step < 4; step++) {
        const vec high = wasm_v128_and(wasm_u16x8_shr(load(steps + 64 * four + 16 * step), 4), wasm_i8x16_const_splat(3));
        bits = wasm_v128_or(bits, wasm_i16x8_shl(high, HIGH_BITS_AT(step)));
      }
      store(to + high_bits_at(4 * four) + 16 * half, bits);
    }
  }
}

INLINE void repack_blocks(int32_t type, const uint8_t *x, size_t row_bytes, int64_t blocks, uint8_t *to, constants k) {
  const int groups = type == TYPE_Q4_0 ? 1 : GROUPS;
  for (int64_t b = 0; b < blocks; b++, x += bytes_of_block(type)) {
    for (size_t i = 0; i < halves_of(type); i++) {
      for (int r = 0; r < REPACKED_ROWS; r++, to += 2) __builtin_memcpy(to, x + (size_t)r * row_bytes + halves_at(type) + 2 * i, 2);
    }
    for (size_t i = 0; i < words_of(type); i++) {
      for (int r = 0; r < REPACKED_ROWS; r++, to += 4) __builtin_memcpy(to, x + (size_t)r * row_bytes + words_at(type) + 4 * i, 4);
    }
    for (int g = 0; g < groups; g++) {
      repack_quants(type, x, row_bytes, g, to, &k);
      to += repacked_32(type);
    }
  }
}

// Eight rows at `x`, into as many bytes elsewhere.
NOINLINE void repack_rows(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, uint8_t *to, constants c) {
  switch (type) {
  case TYPE_Q4_0: repack_blocks(TYPE_Q4_0, x, row_bytes, k / 32, to, c); break;
  case TYPE_Q4_K: repack_blocks(TYPE_Q4_K, x, row_bytes, k / SUPER_BLOCK, to, c); break;
  case TYPE_Q6_K: repack_blocks(TYPE_Q6_K, x, row_bytes, k / SUPER_BLOCK, to, c); break;
  }
}

// --- and back ---------------------------------------------------------------------------------------------------

// 32 weights of one row as bytes.
INLINE void quants_of_row(int32_t type, const uint8_t *x, int row, uint8_t *to) {
  for (int i = 0; i < 32; i++) {
    const int step = i / 4, at = 16 * (row / 4) + 4 * (row % 4) + i % 4;
    to[i] = x[nibbles_at(type, step / 2) + at] >> 4 * (step % 2) & 15;
    if (type == TYPE_Q6_K) to[i] |= (x[high_bits_at(step) + at] >> HIGH_BITS_AT(step) & 3) << 4;
  }
}

// Puts 32 weights where the file's format has those of group g. The block was zero before.
INLINE void put_group(int32_t type, uint8_t *block, int g, const uint8_t *quants) {
  for (int i = 0; i < 32; i++) {
    if (type == TYPE_Q4_0) block[2 + i % 16] |= quants[i] << 4 * (i / 16);
    else if (type == TYPE_Q4_K) block[16 + 32 * (g / 2) + i] |= quants[i] << 4 * (g % 2);
    else {
      block[64 * (g / 4) + 32 * (g % 2) + i] |= (quants[i] & 15) << 4 * (g % 4 / 2);
      block[128 + 32 * (g / 4) + i] |= quants[i] >> 4 << 2 * (g % 4);
    }
  }
}

// Row `row` of the eight repacked ones at `x`, as the file has it.
NOINLINE void row_of_repacked(int32_t type, const uint8_t *x, int row, int64_t k, uint8_t *to) {
  const int groups = type == TYPE_Q4_0 ? 1 : GROUPS;
  for (int64_t b = 0; b < k / weights_of_block(type); b++, to += bytes_of_block(type)) {
    __builtin_memset(to, 0, bytes_of_block(type));
    for (size_t i = 0; i < halves_of(type); i++, x += 2 * REPACKED_ROWS) {
      __builtin_memcpy(to + halves_at(type) + 2 * i, x + 2 * row, 2);
    }
    for (size_t i = 0; i < words_of(type); i++, x += 4 * REPACKED_ROWS) {
      __builtin_memcpy(to + words_at(type) + 4 * i, x + 4 * row, 4);
    }
    for (int g = 0; g < groups; g++) {
      uint8_t quants[32];
      quants_of_row(type, x, row, quants);
      put_group(type, to, g, quants);
      x += repacked_32(type);
    }
  }
}
