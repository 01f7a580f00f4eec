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
#include "super-block-formats.h"
#include "tensor.h"

// Bytes of a tile: 32 weights of four bits and of five, 16 weights of six bits, a step, and a half or an exponent of each
// row.
enum { TILE_ROWS = 16, QUARTETS = 4, TILE_Q4 = 256, TILE_Q5 = 320, TILE_Q6_16 = 192, TILE_STEP = 64 };
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

// 0: this format is not repacked.
INLINE size_t bytes_of_block(int32_t type) {
  switch (type) {
#define BYTES(NAME) case TYPE_##NAME: return BYTES_##NAME;
  REPACKED_FORMATS(BYTES)
#undef BYTES
  default: return 0;
  }
}
INLINE int can_repack(int32_t type) { return bytes_of_block(type) != 0; }
INLINE int is_in_blocks(int32_t type) {
  switch (type) {
#define IN_BLOCKS(NAME, ...) case TYPE_##NAME: return 1;
  BLOCK_FORMATS(IN_BLOCKS)
#undef IN_BLOCKS
  default: return 0;
  }
}
INLINE int64_t weights_of_block(int32_t type) { return is_in_blocks(type) ? 32 : SUPER_BLOCK; }

// A tile's quants of 32 weights.
INLINE size_t repacked_32(int32_t type) {
  switch (type) {
  case TYPE_Q8_0: return 8 * TILE_STEP;
  case TYPE_Q5_K: return TILE_Q5;
  case TYPE_Q6_K: return 2 * TILE_Q6_16;
  default: return TILE_Q4;
  }
}
// Q4_K and Q5_K: a group of 32 with its scales.
INLINE size_t group_with_minimums(int32_t type) { return QUANTS_Q4_K + repacked_32(type); }
INLINE int has_minimums(int32_t type) { return type == TYPE_Q4_K || type == TYPE_Q5_K; }
