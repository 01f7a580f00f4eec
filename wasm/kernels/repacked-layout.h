// Weights repacked once, in place, when a model has been loaded: a tile of sixteen rows stands beside each other, so that a
// lane of a vector is a row. No sums across lanes are left, one load of activations serves sixteen rows, and all of a matrix
// is one stream, which the processor's prefetchers see coming. A tile takes the bytes that its rows took.
//
// Quants of 32 weights of the tile, 256 bytes, from the low nibbles: [pair of steps 0..3][quartet 0..3][row 0..3][4
// weights], a step being four weights of a row; the low nibbles are the even step, the high ones the odd step.
//
//   format  bytes  of a tile
//   Q4_0, IQ4_NL  288  f16 d [row], the quants of 32 weights
//   MXFP4   272    u8 exponent [row], the quants of 32 weights
//   Q8_0    544    f16 d [row], [step 0..7][quartet][row 0..3][4 weights], moved up by 128
//   Q4_K    2304   for each group of 32 weights: u8 [row] (the scale, above it the two high bits of the minimum), u8 [row 0..7]
//                  (the minimum's low nibble, above it that of row + 8), f16 [4], the quants of the group. The halves of
//                  groups 0 to 3 are d of one quartet of rows each, those of groups 4 to 7 dmin.
//   Q5_K    2816   the same with 32 weights of five bits for the quants of a group
//   IQ4_XS  2176   for each group of 32 weights: u8 [row 0..7] (the scale's low nibble, above it that of row + 8), u8 [row 0..3]
//                  (the scale's two high bits, above them those of row + 4, row + 8 and row + 12), f16 d [2], the quants of the
//                  group. The halves of group g are of rows 2g and 2g + 1.
//   Q6_K    3360   f16 d [row], u32 [word 0..3][row] (the 16 scales), 16 × 16 weights of six bits
//
// Of eight steps of Q5_K, five lie in a byte for each weight: steps 0, 1, 2, 4, 6, each [quartet][row][4 weights]. Above steps
// 2, 4 and 6 stand the three low bits of the steps behind them; above 0 and 1, together, the two high bits of these three.
// So a byte takes one mask to give one weight, and three bytes a few more to give two: fewer instructions than fifth bits
// beside nibbles would take.
//
// Of four steps of Q6_K, three lie in a byte for each weight: [step 0..2][quartet][row][4 weights]. The two high bits of the
// three bytes are the fourth, from its high bits to its low ones.
#pragma once
#include "gemm-panel.h"
#include "tensor.h"

// Bytes of a tile: 32 weights of four, five, six and eight bits, 16 weights of six bits, a step, and a half or an exponent of
// each row.
enum { TILE_ROWS = 16, QUARTETS = 4, TILE_Q4 = 256, TILE_Q5 = 320, TILE_Q6 = 384, TILE_Q8 = 512, TILE_Q6_16 = 192, TILE_STEP = 64 };
enum { TILE_HALVES = 32, TILE_EXPONENTS = 16 };
// Each group of Q4_K has its scales beside it, as a block of Q4_0 has. While they stood in front of the super-block, a loop
// read them by themselves, and a processor of the class of Zen 5 then stopped reading ahead.
enum { MINIMUMS_Q4_K = 16, HALVES_Q4_K = 24, QUANTS_Q4_K = 32 };
enum { GROUP_IQ4_XS = 272, HIGH_IQ4_XS = 8, HALVES_IQ4_XS = 12, QUANTS_IQ4_XS = 16 };
enum { SCALES_Q6_K = 32, QUANTS_Q6_K = 288, WORDS_Q6_K = 192 };
enum { TILE_Q4_0 = 288, TILE_MXFP4 = 272, TILE_Q8_0 = 544 };

// The halves of eight rows stand in the order of HALF_PLACE: of each 32 bits the lower half is one of the first four rows,
// the upper one of the second four, so that two or three instructions bring four of them to the place of a float's bits.
#define HALF_PLACE(row) ((row) / 8 * 8 + (row) % 4 * 2 + (row) / 4 % 2)

// Exponents stand so that each 32 bits have one row of every quartet.
#define EXPONENT_PLACE(row) ((row) % 4 * 4 + (row) / 4)

// Where the scales of a tile stand: halves or exponents in front of a block, halves and words in front of a super-block, or
// beside each group, with minimums or with six bits of a scale.
typedef enum { HALVES, EXPONENTS, HALVES_AND_WORDS, MINIMUMS, SIX_BITS } tile_scales;
// See repacked-activations.h.
typedef enum { BYTES_OF_32, WORDS_OF_32, BYTES_OF_256 } record_kind;

typedef struct {
  size_t block;     // bytes of a block in the file; 0: this format is not repacked
  int64_t weights;  // of a block
  size_t quants;    // bytes of 32 weights of a tile
  tile_scales scales;
  record_kind record;
  int subtracted;
} repacked_format;

INLINE repacked_format format_of_repacked(int32_t type) {
  switch (type) {
#define CASE(NAME, name, quants, scales, record, subtracted, ...) \
  case TYPE_##NAME:                                               \
    return (repacked_format){BYTES_##NAME, record == BYTES_OF_256 ? SUPER_BLOCK : 32, quants, scales, record, subtracted};
  REPACKED_FORMATS(CASE)
#undef CASE
  default: return (repacked_format){0, SUPER_BLOCK, 0, 0, 0, 0};
  }
}
INLINE int has_halves(repacked_format format) { return format.scales == HALVES || format.scales == HALVES_AND_WORDS; }
// Where the half that scales a block stands in it, of formats that have the halves of a tile in front.
INLINE size_t halves_at(repacked_format format) { return format.scales == HALVES_AND_WORDS ? 208 : 0; }
INLINE size_t words_of(repacked_format format) { return format.scales == HALVES_AND_WORDS ? 4 : 0; }
// A group of 32 with its minimums and scales.
INLINE size_t group_with_minimums(int32_t type) { return QUANTS_Q4_K + format_of_repacked(type).quants; }

// --- the rows of a tile from the file's layout into this one: once, when a model has been loaded, so it is plain ---

INLINE bytes32 nibbles_of(const uint8_t *packed, const constants *k) {
  return (bytes32){low_nibbles(load(packed), k), high_nibbles(load(packed), k)};
}
INLINE bytes32 quants_of_group(int32_t type, const uint8_t *block, int g, const constants *k) {
  switch (type) {
  case TYPE_Q4_0: case TYPE_IQ4_NL: return nibbles_of(block + 2, k);
  case TYPE_MXFP4: return nibbles_of(block + 1, k);
  case TYPE_Q8_0: {
    const vec up = wasm_i8x16_const_splat(-128);
    return (bytes32){wasm_v128_xor(load(block + 2), up), wasm_v128_xor(load(block + 18), up)};
  }
  case TYPE_IQ4_XS: return nibbles_of(block + 8 + 16 * g, k);
  case TYPE_Q4_K: return group_q4_K(block + 16, g, k);
  case TYPE_Q5_K: return group_q5_K(block, g, k);
  default: return group_q6_K(block, g, k);
  }
}

INLINE vec bits_of(vec bytes, int bits) { return wasm_v128_and(bytes, wasm_i8x16_splat((int8_t)bits)); }

// Eight steps of a quartet, to the tile's bytes of it.
INLINE void store_nibbles(const uint8_t *steps, uint8_t *to) {
  for (int pair = 0; pair < 4; pair++) {
    store(to + TILE_STEP * pair, wasm_v128_or(load(steps + 32 * pair), wasm_i16x8_shl(load(steps + 32 * pair + 16), 4)));
  }
}
INLINE void store_five_bits(const uint8_t *steps, uint8_t *to) {
  const vec third = load(steps + 48), fifth = load(steps + 80), seventh = load(steps + 112);
  const vec shared = wasm_v128_or(wasm_i16x8_shl(bits_of(third, 0x18), 3),
                                  wasm_v128_or(wasm_i16x8_shl(bits_of(fifth, 0x18), 1), wasm_u16x8_shr(bits_of(seventh, 0x18), 1)));
  const vec above[5] = {bits_of(shared, 0xe0), wasm_i16x8_shl(bits_of(shared, 0x1c), 3), wasm_i16x8_shl(bits_of(third, 7), 5),
                        wasm_i16x8_shl(bits_of(fifth, 7), 5), wasm_i16x8_shl(bits_of(seventh, 7), 5)};
  for (int i = 0; i < 5; i++) store(to + TILE_STEP * i, wasm_v128_or(load(steps + 16 * (i < 2 ? i : 2 * i - 2)), above[i]));
}
INLINE void store_six_bits(const uint8_t *steps, uint8_t *to) {
  for (int four = 0; four < 2; four++) {
    const vec fourth = load(steps + 64 * four + 48);
    for (int step = 0; step < 3; step++) {
      const vec two_bits = bits_of(wasm_i16x8_shl(fourth, 2 + 2 * step), 0xc0);
      store(to + TILE_Q6_16 * four + TILE_STEP * step, wasm_v128_or(load(steps + 64 * four + 16 * step), two_bits));
    }
  }
}

// 32 weights of a tile.
INLINE void repack_quants(int32_t type, const uint8_t *block, size_t row_bytes, int g, uint8_t *to, const constants *k) {
  for (int q = 0; q < QUARTETS; q++, to += 16) {
    const uint8_t *x = block + 4 * (size_t)q * row_bytes;
    uint8_t steps[128];
    store_plane(quants_of_group(type, x, g, k), quants_of_group(type, x + row_bytes, g, k),
                quants_of_group(type, x + 2 * row_bytes, g, k), quants_of_group(type, x + 3 * row_bytes, g, k), steps);
    switch (format_of_repacked(type).quants) {
    case TILE_Q4: store_nibbles(steps, to); break;
    case TILE_Q5: store_five_bits(steps, to); break;
    case TILE_Q6: store_six_bits(steps, to); break;
    default: for (int step = 0; step < 8; step++) store(to + TILE_STEP * step, load(steps + 16 * step));
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

INLINE uint8_t *repack_scales_iq4_xs(const uint8_t *x, size_t row_bytes, int g, uint8_t *to) {
  __builtin_memset(to, 0, QUANTS_IQ4_XS);
  for (int r = 0; r < TILE_ROWS; r++, x += row_bytes) {
    const int scale = scale_iq4_xs(x, g) + 32;
    to[r % 8] |= (uint8_t)((scale & 15) << r / 8 * 4);
    to[HIGH_IQ4_XS + r % 4] |= (uint8_t)(scale >> 4 << r / 4 * 2);
    if (r / 2 == g) __builtin_memcpy(to + HALVES_IQ4_XS + 2 * (r % 2), x, 2);
  }
  return to + QUANTS_IQ4_XS;
}

INLINE void repack_blocks(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, uint8_t *to, const constants *c) {
  const repacked_format format = format_of_repacked(type);
  for (int64_t b = 0; b < k / format.weights; b++, x += format.block) {
    if (has_halves(format)) {
      for (int r = 0; r < TILE_ROWS; r++) __builtin_memcpy(to + 2 * HALF_PLACE(r), x + (size_t)r * row_bytes + halves_at(format), 2);
      to += TILE_HALVES;
    }
    if (format.scales == EXPONENTS) {
      for (int r = 0; r < TILE_ROWS; r++) to[EXPONENT_PLACE(r)] = x[(size_t)r * row_bytes];
      to += TILE_EXPONENTS;
    }
    for (size_t i = 0; i < words_of(format); i++) {
      for (int r = 0; r < TILE_ROWS; r++, to += 4) __builtin_memcpy(to, x + (size_t)r * row_bytes + WORDS_Q6_K + 4 * i, 4);
    }
    for (int g = 0; g < format.weights / 32; g++) {
      if (format.scales == MINIMUMS) to = repack_scales_q4_K(x, row_bytes, g, to);
      if (format.scales == SIX_BITS) to = repack_scales_iq4_xs(x, row_bytes, g, to);
      repack_quants(type, x, row_bytes, g, to, c);
      to += format.quants;
    }
  }
}

// The rows of a tile at `x`, into as many bytes elsewhere.
NOINLINE void repack_rows(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, uint8_t *to, constants c) {
#define CASE(NAME, ...) case TYPE_##NAME: repack_blocks(TYPE_##NAME, x, row_bytes, k, to, &c); break;
  switch (type) {
    REPACKED_FORMATS(CASE)
  }
#undef CASE
}

// --- and back ---------------------------------------------------------------------------------------------------

INLINE int six_bits_of_row(const uint8_t *x, int step) {
  const uint8_t *four = x + TILE_Q6_16 * (step / 4);
  if (step % 4 < 3) return four[TILE_STEP * (step % 4)] & 63;
  return four[0] >> 6 << 4 | four[TILE_STEP] >> 6 << 2 | four[2 * TILE_STEP] >> 6;
}
INLINE int five_bits_of_row(const uint8_t *x, int step) {
  if (step < 2 || step % 2 == 0) return x[TILE_STEP * (step < 2 ? step : step / 2 + 1)] & 31;
  const int shared = (x[0] & 0xe0) | x[TILE_STEP] >> 5 << 2;
  return x[TILE_STEP * (step / 2 + 1)] >> 5 | (shared >> (9 - step) & 3) << 3;
}

// 32 weights of one row as bytes.
INLINE void quants_of_row(repacked_format format, const uint8_t *x, int row, uint8_t *to) {
  for (int i = 0; i < 32; i++) {
    const int step = i / 4;
    const uint8_t *at = x + 4 * row + i % 4;
    switch (format.quants) {
    case TILE_Q4: to[i] = at[TILE_STEP * (step / 2)] >> 4 * (step % 2) & 15; break;
    case TILE_Q5: to[i] = (uint8_t)five_bits_of_row(at, step); break;
    case TILE_Q6: to[i] = (uint8_t)six_bits_of_row(at, step); break;
    default: to[i] = at[TILE_STEP * step] ^ 0x80;
    }
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

INLINE void put_scales_iq4_xs(uint8_t *block, int g, const uint8_t *x, int row) {
  block[4 + g / 2] |= (uint8_t)((x[row % 8] >> row / 8 * 4 & 15) << g % 2 * 4);
  block[2 + g / 4] |= (uint8_t)((x[HIGH_IQ4_XS + row % 4] >> row / 4 * 2 & 3) << g % 4 * 2);
  if (row / 2 == g) __builtin_memcpy(block, x + HALVES_IQ4_XS + 2 * (row % 2), 2);
}

// Puts 32 weights where the file's format has those of group g. The block was zero before.
INLINE void put_group(int32_t type, uint8_t *block, int g, const uint8_t *quants) {
  for (int i = 0; i < 32; i++) {
    if (type == TYPE_Q4_0 || type == TYPE_IQ4_NL) block[2 + i % 16] |= quants[i] << 4 * (i / 16);
    else if (type == TYPE_MXFP4) block[1 + i % 16] |= quants[i] << 4 * (i / 16);
    else if (type == TYPE_IQ4_XS) block[8 + 16 * g + i % 16] |= quants[i] << 4 * (i / 16);
    else if (type == TYPE_Q8_0) block[2 + i] = quants[i];
    else if (type == TYPE_Q6_K) {
      block[64 * (g / 4) + 32 * (g % 2) + i] |= (quants[i] & 15) << 4 * (g % 4 / 2);
      block[128 + 32 * (g / 4) + i] |= quants[i] >> 4 << 2 * (g % 4);
    } else {
      block[(type == TYPE_Q5_K ? 48 : 16) + 32 * (g / 2) + i] |= (quants[i] & 15) << 4 * (g % 2);
      if (type == TYPE_Q5_K) block[16 + i] |= quants[i] >> 4 << g;
    }
  }
}

// Row `row` of the tile at `x`, as the file has it.
NOINLINE void row_of_repacked(int32_t type, const uint8_t *x, int row, int64_t k, uint8_t *to) {
  const repacked_format format = format_of_repacked(type);
  for (int64_t b = 0; b < k / format.weights; b++, to += format.block) {
    __builtin_memset(to, 0, format.block);
    if (has_halves(format)) {
      __builtin_memcpy(to + halves_at(format), x + 2 * HALF_PLACE(row), 2);
      x += TILE_HALVES;
    }
    if (format.scales == EXPONENTS) {
      to[0] = x[EXPONENT_PLACE(row)];
      x += TILE_EXPONENTS;
    }
    for (size_t i = 0; i < words_of(format); i++, x += 4 * TILE_ROWS) {
      __builtin_memcpy(to + WORDS_Q6_K + 4 * i, x + 4 * row, 4);
    }
    for (int g = 0; g < format.weights / 32; g++) {
      uint8_t quants[32];
      if (format.scales == MINIMUMS) {
        put_scales_q4_K(to, g, x, row);
        x += QUANTS_Q4_K;
      }
      if (format.scales == SIX_BITS) {
        put_scales_iq4_xs(to, g, x, row);
        x += QUANTS_IQ4_XS;
      }
      quants_of_row(format, x, row, quants);
      put_group(type, to, g, quants);
      x += format.quants;
    }
  }
}
