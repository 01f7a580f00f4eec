// Weights repacked once, in place, when a model has been loaded: a tile of sixteen rows stands beside each other, so that a
// lane of a vector is a row. No sums across lanes are left, one load of activations serves sixteen rows, and all of a matrix
// is one stream, which the processor's prefetchers see coming. A tile takes the bytes that its rows took.
//
// Quants of 32 weights of the tile, 256 bytes, from the low nibbles: [pair of steps 0..3][quartet 0..3][row 0..3][4
// weights], a step being four weights of a row; the low nibbles are the even step, the high ones the odd step.
//
//   format  bytes  of a tile
//   Q4_0    288    f16 d [row], the quants of 32 weights
//   Q8_0    544    f16 d [row], [step 0..7][quartet][row 0..3][4 weights], moved up by 128
//   Q4_K    2304   for each group of 32 weights: u8 [row] (the scale, above it the two high bits of the minimum), u8 [row 0..7]
//                  (the minimum's low nibble, above it that of row + 8), f16 [4], the quants of the group. The halves of
//                  groups 0 to 3 are d of one quartet of rows each, those of groups 4 to 7 dmin.
//   Q6_K    3360   f16 d [row], u32 [word 0..3][row] (the 16 scales), 16 × 16 weights of six bits
//
// Of four steps of Q6_K, three lie in a byte for each weight: [step 0..2][quartet][row][4 weights]. The two high bits of the
// three bytes are the fourth, from its high bits to its low ones.
#pragma once
#include "gemm-panel.h"
#include "tensor.h"

// Bytes of a tile: 32 weights of four bits, 16 weights of six bits, a step, and a half of each row.
enum { TILE_ROWS = 16, QUARTETS = 4, TILE_Q4 = 256, TILE_Q6_16 = 192, TILE_STEP = 64, TILE_HALVES = 32 };
// Each group of Q4_K has its scales beside it, as a block of Q4_0 has. While they stood in front of the super-block, a loop
// read them by themselves, and a processor of the class of Zen 5 then stopped reading ahead.
enum { GROUP_Q4_K = 288, MINIMUMS_Q4_K = 16, HALVES_Q4_K = 24, QUANTS_Q4_K = 32 };
enum { SCALES_Q6_K = 32, QUANTS_Q6_K = 288 };
enum { TILE_Q4_0 = 288, TILE_Q8_0 = 544 };

// The halves of eight rows stand in the order of HALF_PLACE: of each 32 bits the lower half is one of the first four rows,
// the upper one of the second four, so that two or three instructions bring four of them to the place of a float's bits.
#define HALF_PLACE(row) ((row) / 8 * 8 + (row) % 4 * 2 + (row) / 4 % 2)

INLINE int can_repack(int32_t type) {
  return type == TYPE_Q4_0 || type == TYPE_Q8_0 || type == TYPE_Q4_K || type == TYPE_Q6_K;
}
INLINE int is_in_blocks(int32_t type) { return type == TYPE_Q4_0 || type == TYPE_Q8_0; }
INLINE int64_t weights_of_block(int32_t type) { return is_in_blocks(type) ? 32 : SUPER_BLOCK; }
INLINE size_t bytes_of_block(int32_t type) {
  return type == TYPE_Q4_0 ? 18 : type == TYPE_Q8_0 ? 34 : type == TYPE_Q4_K ? BYTES_Q4_K : BYTES_Q6_K;
}
// Where the half that scales a block stands in it.
INLINE size_t halves_at(int32_t type) { return type == TYPE_Q6_K ? 208 : 0; }
INLINE size_t halves_of(int32_t type) { return type == TYPE_Q4_K ? 0 : 1; }
INLINE size_t words_of(int32_t type) { return type == TYPE_Q6_K ? 4 : 0; }
enum { WORDS_Q6_K = 192 };

INLINE size_t repacked_32(int32_t type) { return type == TYPE_Q6_K ? 2 * TILE_Q6_16 : type == TYPE_Q8_0 ? 8 * TILE_STEP : TILE_Q4; }

INLINE bytes32 quants_of_group(int32_t type, const uint8_t *block, int g, const constants *k) {
  if (type == TYPE_Q4_0) return unpack_unsigned(block, FORMAT_Q4_0, k);
  if (type == TYPE_Q8_0) {
    const vec up = wasm_i8x16_const_splat(-128);
    return (bytes32){wasm_v128_xor(load(block + 2), up), wasm_v128_xor(load(block + 18), up)};
  }
  if (type == TYPE_Q4_K) return group_q4_K(block + 16, g, k);
  return group_q6_K(block, g, k);
}

// 32 weights of a tile.
INLINE void repack_quants(int32_t type, const uint8_t *block, size_t row_bytes, int g, uint8_t *to, const constants *k) {
  for (int q = 0; q < QUARTETS; q++) {
    const uint8_t *x = block + 4 * (size_t)q * row_bytes;
    uint8_t steps[128];
    store_plane(quants_of_group(type, x, g, k), quants_of_group(type, x + row_bytes, g, k),
                quants_of_group(type, x + 2 * row_bytes, g, k), quants_of_group(type, x + 3 * row_bytes, g, k), steps);
    if (type == TYPE_Q8_0) {
      for (int step = 0; step < 8; step++) store(to + TILE_STEP * step + 16 * q, load(steps + 16 * step));
      continue;
    }
    for (int pair = 0; type != TYPE_Q6_K && pair < 4; pair++) {
      const vec even = load(steps + 32 * pair), odd = load(steps + 32 * pair + 16);
      store(to + TILE_STEP * pair + 16 * q, wasm_v128_or(even, wasm_i16x8_shl(odd, 4)));
    }
    for (int four = 0; type == TYPE_Q6_K && four < 2; four++) {
      const vec fourth = load(steps + 64 * four + 48);
      for (int step = 0; step < 3; step++) {
        const vec two_bits = wasm_v128_and(wasm_i16x8_shl(fourth, 2 + 2 * step), wasm_u8x16_const_splat(0xc0));
        store(to + TILE_Q6_16 * four + TILE_STEP * step + 16 * q, wasm_v128_or(load(steps + 64 * four + 16 * step), two_bits));
      }
    }
  }
}

// What stands before the quants of group g, of the super-blocks at `x`; returns where those begin.
INLINE uint8_t *repack_scales_q4_K(const uint8_t *x, size_t row_bytes, int g, uint8_t *to) {
  for (int r = 0; r < TILE_ROWS; r++, x += row_bytes) {
    const uint8_t *packed = x + 4;
    const int scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
    const int minimum = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
    to[r] = (uint8_t)(scale | minimum >> 4 << 6);
    if (r < 8) to[MINIMUMS_Q4_K + r] = minimum & 15;
    else to[MINIMUMS_Q4_K + r - 8] |= (uint8_t)((minimum & 15) << 4);
    if (r / 4 == g % 4) __builtin_memcpy(to + HALVES_Q4_K + 2 * (r % 4), x + 2 * (g / 4), 2);
  }
  return to + QUANTS_Q4_K;
}

INLINE void repack_blocks(int32_t type, const uint8_t *x, size_t row_bytes, int64_t blocks, uint8_t *to, constants k) {
  const int groups = is_in_blocks(type) ? 1 : GROUPS;
  for (int64_t b = 0; b < blocks; b++, x += bytes_of_block(type)) {
    for (size_t i = 0; i < halves_of(type); i++) {
      for (int r = 0; r < TILE_ROWS; r++) __builtin_memcpy(to + 2 * HALF_PLACE(r), x + (size_t)r * row_bytes + halves_at(type) + 2 * i, 2);
      to += TILE_HALVES;
    }
    for (size_t i = 0; i < words_of(type); i++) {
      for (int r = 0; r < TILE_ROWS; r++, to += 4) __builtin_memcpy(to, x + (size_t)r * row_bytes + WORDS_Q6_K + 4 * i, 4);
    }
    for (int g = 0; g < groups; g++) {
      if (type == TYPE_Q4_K) to = repack_scales_q4_K(x, row_bytes, g, to);
      repack_quants(type, x, row_bytes, g, to, &k);
      to += repacked_32(type);
    }
  }
}

// The rows of a tile at `x`, into as many bytes elsewhere.
NOINLINE void repack_rows(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, uint8_t *to, constants c) {
  switch (type) {
  case TYPE_Q4_0: repack_blocks(TYPE_Q4_0, x, row_bytes, k / 32, to, c); break;
  case TYPE_Q8_0: repack_blocks(TYPE_Q8_0, x, row_bytes, k / 32, to, c); break;
  case TYPE_Q4_K: repack_blocks(TYPE_Q4_K, x, row_bytes, k / SUPER_BLOCK, to, c); break;
  case TYPE_Q6_K: repack_blocks(TYPE_Q6_K, x, row_bytes, k / SUPER_BLOCK, to, c); break;
  }
}

// --- and back ---------------------------------------------------------------------------------------------------

// 32 weights of one row as bytes.
INLINE void quants_of_row(int32_t type, const uint8_t *x, int row, uint8_t *to) {
  for (int i = 0; i < 32; i++) {
    const int step = i / 4, at = 4 * row + i % 4;
    if (type == TYPE_Q8_0) {
      to[i] = x[TILE_STEP * step + at] ^ 0x80;
      continue;
    }
    if (type != TYPE_Q6_K) {
      to[i] = x[TILE_STEP * (step / 2) + at] >> 4 * (step % 2) & 15;
      continue;
    }
    const uint8_t *four = x + TILE_Q6_16 * (step / 4) + at;
    if (step % 4 < 3) to[i] = four[TILE_STEP * (step % 4)] & 63;
    else to[i] = four[0] >> 6 << 4 | four[TILE_STEP] >> 6 << 2 | four[2 * TILE_STEP] >> 6;
  }
}

// Puts the scale, the minimum and the halves of group g where the file's format has them. The block was zero before.
INLINE void put_scales_q4_K(uint8_t *block, int g, const uint8_t *x, int row) {
  uint8_t *packed = block + 4;
  const int scale = x[row] & 63, low = x[MINIMUMS_Q4_K + row % 8] >> row / 8 * 4 & 15, minimum = low | x[row] >> 6 << 4;
  if (g < 4) packed[g] |= scale, packed[g + 4] |= minimum;
  else {
    packed[g + 4] = (uint8_t)((scale & 15) | low << 4);
    packed[g - 4] |= (uint8_t)(scale >> 4 << 6);
    packed[g] |= (uint8_t)(minimum >> 4 << 6);
  }
  if (row / 4 == g % 4) __builtin_memcpy(block + 2 * (g / 4), x + HALVES_Q4_K + 2 * (row % 4), 2);
}

// Puts 32 weights where the file's format has those of group g. The block was zero before.
INLINE void put_group(int32_t type, uint8_t *block, int g, const uint8_t *quants) {
  for (int i = 0; i < 32; i++) {
    if (type == TYPE_Q4_0) block[2 + i % 16] |= quants[i] << 4 * (i / 16);
    else if (type == TYPE_Q8_0) block[2 + i] = quants[i];
    else if (type == TYPE_Q4_K) block[16 + 32 * (g / 2) + i] |= quants[i] << 4 * (g % 2);
    else {
      block[64 * (g / 4) + 32 * (g % 2) + i] |= (quants[i] & 15) << 4 * (g % 4 / 2);
      block[128 + 32 * (g / 4) + i] |= quants[i] >> 4 << 2 * (g % 4);
    }
  }
}

// Row `row` of the tile at `x`, as the file has it.
NOINLINE void row_of_repacked(int32_t type, const uint8_t *x, int row, int64_t k, uint8_t *to) {
  const int groups = is_in_blocks(type) ? 1 : GROUPS;
  for (int64_t b = 0; b < k / weights_of_block(type); b++, to += bytes_of_block(type)) {
    __builtin_memset(to, 0, bytes_of_block(type));
    for (size_t i = 0; i < halves_of(type); i++, x += 2 * TILE_ROWS) {
      __builtin_memcpy(to + halves_at(type) + 2 * i, x + 2 * HALF_PLACE(row), 2);
    }
    for (size_t i = 0; i < words_of(type); i++, x += 4 * TILE_ROWS) {
      __builtin_memcpy(to + WORDS_Q6_K + 4 * i, x + 4 * row, 4);
    }
    for (int g = 0; g < groups; g++) {
      uint8_t quants[32];
      if (type == TYPE_Q4_K) {
        put_scales_q4_K(to, g, x, row);
        x += QUANTS_Q4_K;
      }
      quants_of_row(type, x, row, quants);
      put_group(type, to, g, quants);
      x += repacked_32(type);
    }
  }
}
